/* What the debuggers look at. */
static int answer(int half) { return 2 * half; }

int main(void) {
    __asm__ volatile("ticks: rdtsc; nop; rex.w rdtsc; nop" ::: "rax", "rdx");
    return answer(21);
}
