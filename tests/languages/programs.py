"""The same five programs in every language:

    hello    prints "hello"
    inputs   prints its arguments, the variable GREETING, the file data/in.txt and its stdin, a
             line each, writes "to stderr" to its standard error and exits with 3
    fails    ends by an error that nobody has caught, or that has no compiler to catch it
    spins    never ends
    hoards   takes memory and touches it for ever
    wrong    where there is a compiler: what it refuses, and what it says then (`complaint`)

`path` is a name that the program can have as an entry point. A folder of runtimes/ that has no
entry here fails tests/e2e/test_languages.py.
"""

PROGRAMS = {
    "python": dict(
        path="app/start.py",
        hello='print("hello")',
        inputs="""
import os, sys
print(" ".join(sys.argv[1:]))
print(os.environ["GREETING"])
print(open("data/in.txt").read())
print(sys.stdin.read())
print("to stderr", file=sys.stderr)
sys.exit(3)
""",
        fails="raise ValueError('boom')",
        spins="while True: pass",
        hoards="x = []\nwhile True: x.append(bytearray(1 << 20))",
    ),
    "bash": dict(
        path="app/start.sh",
        hello="echo hello",
        inputs="""
echo "$*"
echo "$GREETING"
cat data/in.txt
echo
cat
echo
echo "to stderr" >&2
exit 3
""",
        fails="set -e\nfalse",
        spins="while :; do :; done",
        hoards='x=xxxxxxxxxxxxxxxx\nwhile :; do x="$x$x"; done',
    ),
    "javascript": dict(
        path="app/start.js",
        hello='console.log("hello")',
        inputs="""
const fs = require("fs");
console.log(process.argv.slice(2).join(" "));
console.log(process.env.GREETING);
console.log(fs.readFileSync("data/in.txt", "utf8"));
console.log(fs.readFileSync(0, "utf8"));
console.error("to stderr");
process.exitCode = 3;
""",
        fails='throw new Error("boom")',
        spins="for (;;);",
        hoards="const x = []; for (;;) x.push(Buffer.alloc(1 << 20, 1));",
    ),
    "lua": dict(
        path="app/start.lua",
        hello='print("hello")',
        inputs="""
print(table.concat(arg, " "))
print(os.getenv("GREETING"))
print(io.open("data/in.txt"):read("a"))
print(io.read("a"))
io.stderr:write("to stderr\\n")
os.exit(3)
""",
        fails='error("boom")',
        spins="while true do end",
        hoards='local x = {}\nwhile true do x[#x + 1] = string.rep(tostring(#x), 1 << 20) end',
    ),
    "perl": dict(
        path="app/start.pl",
        hello='print "hello\\n";',
        inputs="""
print "@ARGV\\n$ENV{GREETING}\\n";
open(my $in, "<", "data/in.txt") or die;
print <$in>, "\\n", <STDIN>, "\\n";
print STDERR "to stderr\\n";
exit 3;
""",
        fails='die "boom";',
        spins="1 while 1;",
        hoards='my @x; push @x, "x" x (1 << 20) . @x while 1;',
    ),
    "php": dict(
        path="app/start.php",
        hello='<?php echo "hello\\n";',
        inputs="""<?php
echo implode(" ", array_slice($argv, 1)), "\\n", getenv("GREETING"), "\\n";
echo file_get_contents("data/in.txt"), "\\n", stream_get_contents(STDIN), "\\n";
fwrite(STDERR, "to stderr\\n");
exit(3);
""",
        fails='<?php throw new Exception("boom");',
        spins="<?php while (true);",
        hoards='<?php $x = []; while (true) $x[] = str_repeat(chr(count($x) % 256), 1 << 20);',
    ),
    "ruby": dict(
        path="app/start.rb",
        hello='puts "hello"',
        inputs="""
puts ARGV.join(" "), ENV["GREETING"], File.read("data/in.txt"), $stdin.read
warn "to stderr"
exit 3
""",
        fails='raise "boom"',
        spins="loop {}",
        hoards='x = []\nloop { x << (x.size.to_s * (1 << 18)) }',
    ),
    "c": dict(
        path="app/start.c",
        hello='#include <stdio.h>\nint main(void) { puts("hello"); }',
        inputs="""
#include <stdio.h>
#include <stdlib.h>

static void copy(FILE *in)
{
    for (int c; (c = getc(in)) != EOF;)
        putchar(c);
    putchar('\\n');
}

int main(int argc, char **argv)
{
    printf("%s %s\\n%s\\n", argv[1], argv[2], getenv("GREETING"));
    copy(fopen("data/in.txt", "r"));
    copy(stdin);
    fprintf(stderr, "to stderr\\n");
    return argc;
}
""",
        fails="int main(void) { *(volatile int *)0 = 1; }",
        spins="int main(void) { for (;;); }",
        hoards="#include <stdlib.h>\n#include <string.h>\n"
               "int main(void) { for (;;) { char *p = malloc(1 << 20); if (p) memset(p, 1, 1 << 20); } }",
        wrong="int main(void) { return x; }",
        complaint="main.c:1:",
    ),
    "cpp": dict(
        path="app/start.cpp",
        hello='#include <iostream>\nint main() { std::cout << "hello" << std::endl; }',
        inputs="""
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>

static std::string all(std::istream &in)
{
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
}

int main(int argc, char **argv)
{
    std::ifstream file("data/in.txt");
    std::cout << argv[1] << " " << argv[2] << "\\n" << std::getenv("GREETING") << "\\n"
              << all(file) << "\\n" << all(std::cin) << "\\n";
    std::cerr << "to stderr\\n";
    return argc;
}
""",
        fails='#include <stdexcept>\nint main() { throw std::runtime_error("boom"); }',
        spins="int main() { volatile int x = 0; for (;;) x = x + 1; }",
        hoards="#include <vector>\nint main() { std::vector<std::vector<char>> x; for (;;) x.emplace_back(1 << 20, 1); }",
        wrong="int main() { return x; }",
        complaint="main.cpp:1:",
    ),
    "rust": dict(
        path="app/start.rs",
        hello='fn main() { println!("hello"); }',
        inputs="""
use std::io::Read;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut stdin = String::new();
    std::io::stdin().read_to_string(&mut stdin).unwrap();
    println!("{}", args.join(" "));
    println!("{}", std::env::var("GREETING").unwrap());
    println!("{}", std::fs::read_to_string("data/in.txt").unwrap());
    println!("{}", stdin);
    eprintln!("to stderr");
    std::process::exit(3);
}
""",
        fails='fn main() { panic!("boom"); }',
        spins="fn main() { loop { std::hint::spin_loop(); } }",
        hoards="fn main() { let mut x = vec![]; loop { x.push(vec![1u8; 1 << 20]); } }",
        wrong="fn main() { x; }",
        complaint="main.rs:1:",
    ),
    "go": dict(
        path="app/start.go",
        hello='package main\nimport "fmt"\nfunc main() { fmt.Println("hello") }',
        inputs="""
package main

import (
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	file, _ := os.ReadFile("data/in.txt")
	stdin, _ := io.ReadAll(os.Stdin)
	fmt.Println(strings.Join(os.Args[1:], " "))
	fmt.Println(os.Getenv("GREETING"))
	fmt.Println(string(file))
	fmt.Println(string(stdin))
	fmt.Fprintln(os.Stderr, "to stderr")
	os.Exit(3)
}
""",
        fails='package main\nfunc main() { panic("boom") }',
        spins="package main\nfunc main() { for {} }",
        hoards="package main\nfunc main() { x := [][]byte{}; for { b := make([]byte, 1<<20); "
               "for i := range b { b[i] = 1 }; x = append(x, b) } }",
        wrong="package main\nfunc main() { x() }",
        complaint="main.go:2:",
    ),
    "java": dict(
        path="app/Start.java",
        hello='class Hello { public static void main(String[] a) { System.out.println("hello"); } }',
        inputs="""
import java.nio.file.*;

public class Main {
    public static void main(String[] args) throws Exception {
        System.out.println(String.join(" ", args));
        System.out.println(System.getenv("GREETING"));
        System.out.println(Files.readString(Path.of("data/in.txt")));
        System.out.println(new String(System.in.readAllBytes()));
        System.err.println("to stderr");
        System.exit(3);
    }
}
""",
        fails='class F { public static void main(String[] a) { throw new RuntimeException("boom"); } }',
        spins="class S { public static void main(String[] a) { while (true); } }",
        # Outside of its heap, which ends by an exception of its own.
        hoards="import java.nio.*; import java.util.*;\nclass H { public static void main(String[] a) { "
               "var x = new ArrayList<ByteBuffer>(); while (true) { var b = ByteBuffer.allocateDirect(1 << 20); "
               "for (int i = 0; i < 1 << 20; i += 4096) b.put(i, (byte) 1); x.add(b); } } }",
    ),
    "typescript": dict(
        path="app/start.ts",
        hello='const text: string = "hello";\nconsole.log(text);',
        inputs="""
import * as fs from "fs";
const args: string[] = process.argv.slice(2);
console.log(args.join(" "));
console.log(process.env.GREETING);
console.log(fs.readFileSync("data/in.txt", "utf8"));
console.log(fs.readFileSync(0, "utf8"));
console.error("to stderr");
process.exitCode = 3;
""",
        fails='throw new Error("boom");',
        spins="for (;;);",
        hoards="const x: Buffer[] = []; for (;;) x.push(Buffer.alloc(1 << 20, 1));",
        wrong="const x: = 1;",
        complaint="main.ts:1:",
    ),
}
