//: output and error
println('out')
eprintln('err')
//: main function
fn main() { println('in main') }
//: exit code
println('before')
exit(3)
//: output without a line end
print('no end')
//: interpolation
name := 'V'
println('hello ${name} ${6 * 7} ${1.5:.2f}')
//: bytes that are not UTF-8
print('a\xffb')
//: much output
for i in 0 .. 20000 { println('line ${i}') }
//: strings
println('a,b,c'.split(',').reverse().join('-').to_upper())
//: arrays
mut all := [3, 1, 2]
all.sort()
println(all.map(it * 2).filter(it > 2))
//: maps
mut ages := map[string]int{}
ages['ann'] = 30
ages['bob'] = 25
println(ages)
//: structures and methods
struct Point { x int y int }
fn (p Point) sum() int { return p.x + p.y }
println(Point{1, 2}.sum())
println(Point{1, 2})
//: enumeration
enum Color { red green }
println(Color.green)
match Color.red { .red { println('is red') } else { println('is not') } }
//: sum type
type Either = int | string
fn kind(e Either) string { return if e is int { 'number' } else { 'text' } }
println(kind(Either(1)) + kind(Either('a')))
//: error that is handled
import strconv
n := strconv.atoi('x') or { -1 }
println(n)
//: defer
fn work() { defer { println('deferred') } println('work') }
fn main() { work() }
//: closures
factor := 3
triple := fn [factor] (n int) int { return n * factor }
println(triple(14))
//: channel
ch := chan int{cap: 2}
ch <- 42
println(<-ch)
//: files
import os
os.write_file('a', 'text') or { panic('no') }
os.mkdir_all('b/c') or { panic('no') }
mut names := os.ls('.') or { panic('no') }
names.sort()
println(names)
println(os.read_file('a') or { '' })
//: missing file
import os
println(os.read_file('no-such-file') or { 'is missing' })
//: environment
import os
println(os.getenv('LC_CTYPE'))
println(os.getenv('HOME') == os.getenv('TMPDIR'))
//: end of standard input
import os
println(os.get_line() == '')
//: other program
import os
println(os.execute('echo from the shell').output.trim_space())
//: exit code of another program
import os
exit(os.system('exit 4'))
//: json
import json
struct User { name string age int }
println(json.encode(User{'ann', 30}))
user := json.decode(User, '{"name":"bob","age":25}') or { User{} }
println(user.age)
//: time and random numbers
import time
import rand
println(time.unix(0).year)
println(rand.intn(1) or { 0 })
//: memory
mut sum := 0
for i in 0 .. 200 { block := []int{len: 10000, init: 1} sum += block[i] }
println(sum)
//: assertion that holds
assert 1 + 1 == 2
println('holds')
