"""A kernel can forget a signal that it has noted, between two instructions. Here one forgets every one: its handlers only
count, and neither set the timer nor ask for input."""

from __future__ import annotations

from tests.host.clock.small_kernel import output_of_kernel


def test_a_kernel_that_forgets_an_alarm_is_told_of_it_once_more_and_then_of_the_next() -> None:
    assert output_of_kernel(
        "set_timer(3600); print(idle()[0]); print(idle()[0]); set_timer(3600); print(idle()[0])"
    ).split() == ["1", "2", "3"]


def test_a_kernel_that_forgets_input_of_the_host_is_told_of_it_before_it_jumps_to_its_timer() -> None:
    forgets = "set_timer(3600); os.write(host, b'x'); print(seen()); idle(); print(idle())"
    assert output_of_kernel(forgets).splitlines() == ["[0, 1]", "[0, 2]"]
