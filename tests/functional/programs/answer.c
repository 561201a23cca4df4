/* What the debuggers look at. */
static int answer(int half) { return 2 * half; }

int main(void) { return answer(21); }
