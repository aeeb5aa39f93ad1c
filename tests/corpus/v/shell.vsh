//: first line of a shell script
#!/usr/bin/env -S v run
println('ran')
//: functions of os without import
mkdir('d') or { panic('no') }
println(exists('d'))
println(is_dir('d'))
//: commands of a shell script
println(execute('echo one; exit 2').exit_code)
//: exit code of a shell script
exit(5)
