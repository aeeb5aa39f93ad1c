// Runs as type v, where V is installed.
import os

fn main() {
	eprintln('greeting for job ' + os.getenv('HERO_JOB_ID'))
	println('hello from V')
}
