"""Verbs that start a lab that stays, and that watch and steer runs that go on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dilaton.cli.errors import BadInputError
from dilaton.cli.verbs.options import (
    DriveOption,
    EngineOption,
    HoldAtOption,
    LabOrSaved,
    MachinesOption,
    MaxDisk,
    MaxSpeedOption,
    OntoOption,
    Out,
    RunName,
    SetOption,
    TdfOption,
    TerminalOption,
    completing,
    hosts,
    overridden,
    read_lab,
)

app = typer.Typer()


@app.command()
def up(
    context: typer.Context,
    lab: LabOrSaved,
    detached: Annotated[
        bool, typer.Option("--detach", "-d", help="Leave it in the background, until dilaton down.")
    ] = False,
    out: Out = None,
    tdf: TdfOption = None,
    drive: DriveOption = None,
    max_speed: MaxSpeedOption = None,
    hold_at: HoldAtOption = None,
    metrics: Annotated[
        int | None,
        typer.Option("--metrics", metavar="PORT", min=1, max=65535, help="Answer Prometheus at this port."),
    ] = None,
    settings: SetOption = None,
    max_disk: MaxDisk = None,
    machines: MachinesOption = 1,
    onto: OntoOption = None,
    engine: EngineOption = "local",
) -> None:
    """Start a lab that stays, and work in it by hand, at a prompt; at host speed unless told otherwise."""
    from dilaton.cli.runs.up import bring_up
    from dilaton.service.request import RunRequest

    overrides = overridden(tdf, drive, max_speed, settings)
    text, saved = read_lab(lab, is_here=context.obj is None)
    request = RunRequest(
        lab=text,
        overrides=overrides,
        out=out,
        hold_at=hold_at,
        metrics=metrics,
        stays=True,
        max_disk=max_disk,
        saved=saved,
        machines=machines,
        onto=hosts(onto),
        engine=engine,
    )
    if context.obj is not None:
        from dilaton.cli.runs.remote import bring_up_there

        raise typer.Exit(bring_up_there(context.obj, request, detached=detached))
    raise typer.Exit(bring_up(request, detached=detached))


@app.command()
def down(context: typer.Context, run: RunName) -> None:
    """End a lab that was brought up, in good order, and wait for its end; its run directory stays."""
    if context.obj is not None:
        from dilaton.cli.runs.remote import stop_there

        raise typer.Exit(stop_there(context.obj, run))
    from dilaton.cli.steering.control import stop_run

    raise typer.Exit(stop_run(run))


@app.command("cli")
def prompt(run: RunName) -> None:
    """Work in a run in progress, at a prompt with the words of Mininet's; it goes on afterwards."""
    from dilaton.cli.prompt.prompt import attach_prompt

    raise typer.Exit(attach_prompt(run))


@app.command()
def ps(
    context: typer.Context,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="And those that are over, of the directory runs.")
    ] = False,
) -> None:
    """List the runs in progress."""
    if context.obj is not None:
        from dilaton.cli.runs.remote import list_there

        raise typer.Exit(list_there(context.obj, also_over=everything))
    from dilaton.cli.steering.control import list_runs

    raise typer.Exit(list_runs(also_left=everything))


@app.command()
def top(
    context: typer.Context,
    run: RunName,
    once: Annotated[bool, typer.Option("--once", help="Print it once, as without a terminal.")] = False,
    sort: Annotated[
        str,
        typer.Option(
            metavar="sends|packets|queue|drops|lost|name",
            help="What the first interfaces have most of.",
            autocompletion=completing("sends", "packets", "queue", "drops", "lost", "name"),
        ),
    ] = "sends",
    only: Annotated[
        str | None, typer.Option(metavar="NODE", help="Only nodes of this name, which may have * and ?.")
    ] = None,
) -> None:
    """Watch a run in progress: its clock, links, nodes and programs."""
    from dilaton.cli.steering.top import Choice, show_top

    if context.obj is not None:
        from dilaton.cli.runs.reaching import top_there

        raise typer.Exit(top_there(context.obj, run, Choice.of(sort, only), once=once))
    raise typer.Exit(show_top(run, Choice.of(sort, only), once=once))


@app.command()
def clock(
    context: typer.Context,
    run: RunName,
    action: Annotated[
        str, typer.Argument(metavar="show|hold|release|until|step|tdf", help="What to do with its clock.")
    ] = "show",
    value: Annotated[
        str | None, typer.Argument(metavar="T|N", help="until: a virtual instant, such as 5s; tdf: a factor.")
    ] = None,
) -> None:
    """Show or steer the clock of a run in progress."""
    if context.obj is not None:
        from dilaton.cli.runs.remote import steer_there

        raise typer.Exit(steer_there(context.obj, run, action, value))
    from dilaton.cli.steering.control import steer

    raise typer.Exit(steer(run, action, value))


@app.command(name="link")
def steer_link(
    context: typer.Context,
    run: RunName,
    which: Annotated[
        str | None, typer.Argument(metavar="LINK", help="By its ends: a--b or a:eth0--b:eth1 (default: show all).")
    ] = None,
    action: Annotated[str, typer.Argument(metavar="show|set|down|up", help="What to do with it.")] = "show",
    fields: Annotated[
        list[str] | None,
        typer.Argument(metavar="FIELD=VALUE", help="set: as in the lab: loss=5% delay.jitter=2ms b_to_a.rate=1Mbit"),
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="T", help="At this virtual instant, such as 5s (default: now).")
    ] = None,
) -> None:
    """Show or change the links of a run in progress."""
    if context.obj is not None:
        from dilaton.cli.runs.reaching import link_there

        raise typer.Exit(link_there(context.obj, run, which, action, fields or [], at))
    from dilaton.cli.steering.link import steer_link as steer

    raise typer.Exit(steer(run, which, action, fields or [], at))


@app.command(name="fault")
def steer_faults(
    context: typer.Context,
    run: RunName,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="list|undo [NAME]|FIELD=VALUE",
            help="As in the lab: pause=db1 for=3s, or '{link: a--b, loss: 30%, for: 5s}' (default: list).",
        ),
    ] = None,
) -> None:
    """Begin a fault in a run in progress, now; list its faults, or undo them."""
    if context.obj is not None:
        from dilaton.cli.runs.reaching import faults_there

        raise typer.Exit(faults_there(context.obj, run, words or []))
    from dilaton.cli.steering.fault import steer_faults as steer

    raise typer.Exit(steer(run, words or []))


@app.command(context_settings={"allow_interspersed_args": False})
def shell(
    context: typer.Context,
    run: RunName,
    node: Annotated[str, typer.Argument(metavar="NODE", help="The name of the node.")],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND", help="A program and arguments (default: a shell).")
    ] = None,
    terminal: TerminalOption = None,
) -> None:
    """Run a program in a node of a run in progress, in this terminal or with these streams."""
    # Which ends the options of most programs that execute others, and is theirs, not the command's.
    words = command[1:] if command and command[0] == "--" else command or []
    if context.obj is not None:
        from dilaton.cli.runs.reaching import shell_there

        raise typer.Exit(shell_there(context.obj, run, node, words, terminal))
    from dilaton.cli.steering.shell import open_shell

    raise typer.Exit(open_shell(run, node, words, terminal))


@app.command()
def capture(
    context: typer.Context,
    run: RunName,
    place: Annotated[
        str,
        typer.Argument(metavar="NODE[:INTERFACE]", help="Where; the interface may be left out if there is only one."),
    ],
    pcap_filter: Annotated[
        list[str] | None, typer.Argument(metavar="FILTER", help="As for tcpdump (default: every packet).")
    ] = None,
    to: Annotated[
        str | None, typer.Option("--write", "-w", metavar="FILE", help="Write pcapng to this file; -: standard output.")
    ] = None,
    wireshark: Annotated[bool, typer.Option("--wireshark", help="Show the packets in Wireshark.")] = False,
    count: Annotated[int | None, typer.Option("--count", "-c", metavar="N", help="End after so many packets.")] = None,
    snaplen: Annotated[int, typer.Option("--snaplen", "-s", metavar="BYTES", help="Of each packet, at most.")] = 262144,
) -> None:
    """Show or write what passes an interface of a run in progress, in virtual time, until Ctrl-C."""
    if context.obj is not None:
        from dilaton.cli.runs.reaching import capture_there

        raise typer.Exit(
            capture_there(context.obj, run, place, pcap_filter or [], to, snaplen, count, wireshark=wireshark)
        )
    from dilaton.cli.steering.capture import follow

    raise typer.Exit(follow(run, place, pcap_filter or [], to, snaplen, count, wireshark=wireshark))


@app.command()
def forward(
    context: typer.Context,
    run: RunName,
    ports: Annotated[
        list[str],
        typer.Argument(
            metavar="[PORT:]NODE:PORT", help="A port here and one of a node: 8080:web:80 (default: any here)."
        ),
    ],
) -> None:
    """Have ports of this machine lead to TCP ports of nodes of a run in progress, until Ctrl-C."""
    if context.obj is not None:
        from dilaton.cli.runs.reaching import forward_there

        raise typer.Exit(forward_there(context.obj, run, ports))
    from dilaton.cli.steering.forward import forward as forward_ports

    raise typer.Exit(forward_ports(run, ports))


@app.command()
def vpn(
    context: typer.Context,
    run: RunName,
    node: Annotated[
        str | None,
        typer.Argument(metavar="[NODE]", help="By which it is entered (default: the first that forwards)."),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", "-w", metavar="FILE", help="The configuration (default: the run's name)."),
    ] = None,
    listen: Annotated[
        str,
        typer.Option(
            "--listen", metavar="ADDRESS[:PORT[-PORT]]", help="Where WireGuard reaches it (default: any port)."
        ),
    ] = "127.0.0.1",
) -> None:
    """Put a machine with WireGuard into the network of a run in progress, until Ctrl-C."""
    if context.obj is not None:
        from dilaton.cli.runs.reaching import vpn_there

        raise typer.Exit(vpn_there(context.obj, run, node, to, listen))
    from dilaton.cli.vpn.enter import vpn as enter

    raise typer.Exit(enter(run, node, to, listen))


@app.command("cp")
def copy(
    context: typer.Context,
    run: RunName,
    source: Annotated[str, typer.Argument(metavar="[NODE:]PATH", help="From where.")],
    target: Annotated[
        str, typer.Argument(metavar="[NODE:]PATH", help="To where; one of the two is in a node, such as h1:/tmp.")
    ],
    preserve: Annotated[
        bool,
        typer.Option("--preserve", help="From a node, keep set-id bits, pipes, and links that lead out, too."),
    ] = False,
) -> None:
    """Copy files and directories to a node of a run in progress, or from there."""
    if context.obj is not None:
        from dilaton.cli.runs.reaching import copy_there

        copy_there(context.obj, run, source, target, preserve=preserve)
        return
    from dilaton.cli.steering.cp import copy as copy_files

    copy_files(run, source, target, preserve=preserve)


@app.command()
def save(
    context: typer.Context,
    place: Annotated[
        str, typer.Argument(metavar="RUN[:NODE]", help="A run in progress, or a node of one that has an image.")
    ],
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="What the saved lab will be called, or the image, such as db:full.")
    ],
    max_size: Annotated[
        str | None,
        typer.Option(
            "--max-size", metavar="SIZE", help="How large its files may be together (default: half of what is free)."
        ),
    ] = None,
) -> None:
    """Save a run, from which dilaton up NAME goes on; or make an image of a node."""
    if context.obj is not None:
        from dilaton.cli.runs.saved_there import save_there

        save_there(context.obj, place, name, max_size)
        return
    from dilaton.cli.steering.save import save as save_place

    save_place(place, name, max_size)


@app.command()
def suspend(context: typer.Context, run: RunName) -> None:
    """Put a run away: its memory goes to disk, and its cores are free, until dilaton resume, if need be days later."""
    if context.obj is not None:
        from dilaton.cli.runs.reaching import suspend_there

        suspend_there(context.obj, run)
        return
    from dilaton.cli.runs.suspend import suspend as put_away

    put_away(run)


@app.command()
def resume(
    context: typer.Context,
    run: RunName,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="T", help="Of a run on the event drive that is over: repeat it up to here, and hold it."
        ),
    ] = None,
    out: Out = None,
) -> None:
    """Let a run go on that was suspended; or one that is over, from an instant of it, in the state it had then."""
    from dilaton.cli.runs import suspend as away

    if context.obj is not None:
        if out is not None:
            raise BadInputError("--out: a run of a server is kept there")
        if at is not None:
            from dilaton.cli.runs.saved_there import repeat_there

            repeat_there(context.obj, run, at)
            return
        from dilaton.cli.runs.reaching import resume_there

        resume_there(context.obj, run)
        return
    if at is not None:
        away.repeat(run, at, out)
    elif out is not None:
        raise BadInputError("--out: is of --at T, which begins another run")
    else:
        away.resume(run)


@app.command()
def logs(
    context: typer.Context,
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help="A run directory, or a lab that is running: its file, directory or name."),
    ],
    who: Annotated[
        str | None, typer.Argument(metavar="NODE[/PROCESS]", help="Whose outputs (default: everyone's).")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as they grow, until the run ends.")] = False,
    timeline: Annotated[
        bool,
        typer.Option("--timeline", help="Line by line as they came, among what happened (takes measure.outputs)."),
    ] = False,
) -> None:
    """Print what the programs of a run have written."""
    if context.obj is not None:
        from dilaton.cli.runs.reaching import logs_there

        raise typer.Exit(logs_there(context.obj, run, who, follow=follow, timeline=timeline))
    from dilaton.cli.results.logs import print_logs

    raise typer.Exit(print_logs(run, who, follow=follow, timeline=timeline))


@app.command()
def stop(context: typer.Context, run: RunName) -> None:
    """End a run in good order, and wait for its end."""
    if context.obj is not None:
        from dilaton.cli.runs.remote import stop_there

        raise typer.Exit(stop_there(context.obj, run))
    from dilaton.cli.steering.control import stop_run

    raise typer.Exit(stop_run(run))
