# gdb takes a program through four instructions, two of which read the time-stamp counter, stops it in a function and shows
# its argument; strace tells how it exits.
step='-ex stepi -ex "printf \"step to +%d\\n\", (long)\$pc - (long)&ticks"'
eval gdb -q -nx -batch -ex "'break *ticks'" -ex run "$step $step $step $step" \
    -ex "'break answer'" -ex continue -ex "'print half'" -ex finish ./answer 2>&1 | grep -E '^(step|\$1|Value returned)'
strace -f -e trace=exit_group sh -c ./answer 2>&1 | grep -o 'exit_group(42)' | head -n 1
