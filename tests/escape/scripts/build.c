// C: a compiler is a program that reads files by names in its input. `@NAME@` is a target.

//: include a secret
//: ends: ermission denied
//: without: may be held
#include "@SECRET@"
int main(void) { return 0; }

//: include a secret as bytes
//: ends: file not found
#include <stdio.h>
extern const char text[];
__asm__(".globl text\ntext: .incbin \"@SECRET@\"\n.byte 0\n");
int main(void) { puts("ESCAPED"); return text[0]; }

//: include a secret by the assembler
//: ends: ermission denied
//: without: may be held
__asm__(".include \"@SECRET@\"");
int main(void) { return 0; }

//: include the daemon's configuration by a name that is made
//: ends: ermission denied
//: without: may be held
#define NAME "@CONFIG@"
#include NAME
int main(void) { return 0; }

//: include itself without end
//: ends: In file included
//: without: may be held
#include __FILE__
int main(void) { return 0; }

//: read a secret as a program
#include <stdio.h>
int main(void) {
    FILE *file = fopen("@SECRET@", "r");
    puts(file ? "ESCAPED" : "held");
}

//: unshare as a program
//: without: escapes as root
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
int main(void) { puts(unshare(CLONE_NEWNS) == 0 ? "ESCAPED" : "held"); }

//: make a socket as a program
#include <stdio.h>
#include <sys/socket.h>
int main(void) { puts(socket(AF_INET, SOCK_STREAM, 0) >= 0 ? "ESCAPED" : "held"); }
