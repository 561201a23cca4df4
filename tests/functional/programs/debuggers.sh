# gdb stops a program in a function and shows its argument; strace tells how it exits.
gdb -q -nx -batch -ex 'break answer' -ex run -ex 'print half' -ex finish ./answer 2>&1 | grep -E '^(\$1|Value returned)'
strace -f -e trace=exit_group sh -c ./answer 2>&1 | grep -o 'exit_group(42)' | head -n 1
