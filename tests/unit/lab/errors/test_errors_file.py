"""Mistakes in the form of a lab file: each gets its one line, with the place, the fault and the fix."""

from __future__ import annotations

import pytest

from dilaton.lab import LabError, loads

HEAD = "name: x\nnodes: {a: {}, b: {}}\n"
"""The first two lines of most labs here."""

YAML = [
    ("an empty file", "", "lab.yaml:1:1: the file is empty; a lab needs at least a name and nodes"),
    ("text alone", "hello\n", "lab.yaml:1:1: a lab is a mapping of fields, such as name: and nodes:, not 'hello'"),
    (
        "a tab as indentation",
        "name: x\n\tseed: 1\n",
        "lab.yaml:2:1: not YAML: while scanning for the next token, found character '\\t' that cannot start any token; indent with spaces, not tabs",
    ),
    (
        "a colon in bare text",
        HEAD + "run:\n  - on: a\n    exec: echo a: b\n",
        "lab.yaml:5:17: not YAML: mapping values are not allowed here; a text that contains ': ' must be in quotes, and a field needs a space after its colon",
    ),
    (
        "fields that do not begin below each other",
        "name: x\nnodes:\n  a: {}\n b: {}\n",
        "lab.yaml:4:2: not YAML: while parsing a block mapping, expected <block end>, but found '<block mapping start>'; what belongs together begins in the same column",
    ),
    (
        "an open bracket",
        HEAD + "links: [a -- b\nseed: 1\n\n",
        "lab.yaml:3:8: not YAML: while parsing a flow sequence, expected ',' or ']', but got ':'; a bracket is not closed",
    ),
    (
        "an open bracket at the end",
        HEAD + "links: [a -- b\n\n",
        "lab.yaml:3:8: not YAML: while parsing a flow sequence, expected ',' or ']', but got '<stream end>'; a bracket is not closed",
    ),
    (
        "a bracket too many",
        HEAD + "links: [a -- b]]\n",
        "lab.yaml:3:16: not YAML: while parsing a block mapping, expected <block end>, but found ']'; a bracket closes nothing",
    ),
    (
        "an open quote",
        'name: "x\nnodes: {a: {}}\n',
        "lab.yaml:1:7: not YAML: while scanning a quoted scalar, found unexpected end of stream; a quote is not closed",
    ),
    (
        "an unknown alias",
        HEAD + "links: *none\n",
        "lab.yaml:3:8: not YAML: found undefined alias 'none'; a text that begins with * must be in quotes",
    ),
    (
        "a list of nodes",
        "name: x\nnodes: [a, b]\nlinks: [a -- b]\n",
        "lab.yaml:2:8: nodes: must be a mapping, not a list; write for example nodes: {a: {}, b: {}}",
    ),
    (
        "a topology without a number of nodes",
        "name: x\ntopology: {generate: line}\n",
        "lab.yaml:2:11: topology.nodes: missing",
    ),
    ("an alias that contains itself", HEAD + "links: &l [*l]\n", "lab.yaml:3:8: links[0]: this alias contains itself"),
    ("a tag", HEAD + "seed: !secret 1\n", "lab.yaml:3:7: seed: !secret: tags have no meaning in a lab; remove it"),
    (
        "two documents",
        HEAD + "---\nname: y\n",
        "lab.yaml:3:1: not YAML: expected a single document in the stream, but found another document; a file holds one lab",
    ),
    (
        "a control character",
        "name: x\nnodes: {a\u0007: {}}\n",
        "lab.yaml:2:10: not YAML: the character U+0007 is not allowed in a text file",
    ),
]

FIELDS = [
    ("a missing name", "nodes: {a: {}}\n", "lab.yaml:1:1: name: missing; write for example name: dumbbell"),
    ("a missing list of nodes", "name: x\n", "lab.yaml:1:1: nodes: no nodes; write at least one, as in nodes: {a: {}}"),
    ("no nodes", "name: x\nnodes: {}\n", "lab.yaml:2:8: nodes: no nodes; write at least one, as in nodes: {a: {}}"),
    (
        "a name of another emulator",
        HEAD + "links: [{endpoints: a -- b, bandwidth: 1Gbit}]\n",
        "lab.yaml:3:29: links[0].bandwidth: unknown field; did you mean rate?",
    ),
    (
        "a name of another emulator, misspelt",
        HEAD + "links: [{endpoints: a -- b, bandwith: 1Gbit}]\n",
        "lab.yaml:3:29: links[0].bandwith: unknown field; did you mean rate?",
    ),
    (
        "a field that belongs into another",
        HEAD + "links: [{endpoints: a -- b, delay: 5ms, jitter: 1ms}]\n",
        "lab.yaml:3:41: links[0].jitter: unknown field; did you mean delay.jitter?",
    ),
    (
        "a TDF that is not below time",
        HEAD + "tdf: 10\n",
        "lab.yaml:3:1: tdf: unknown field; did you mean time.tdf?",
    ),
    ("a typo in a top-level field", HEAD + "sede: 3\n", "lab.yaml:3:1: sede: unknown field; did you mean seed?"),
    (
        "a typo in a field of a link",
        HEAD + "links: [{endpoints: a -- b, dealy: 20ms}]\n",
        "lab.yaml:3:29: links[0].dealy: unknown field; did you mean delay?",
    ),
    (
        "a typo in a field of a direction",
        HEAD + "links: [{endpoints: a -- b, a_to_b: {rat: 1Mbit}}]\n",
        "lab.yaml:3:38: links[0].a_to_b.rat: unknown field; did you mean rate?",
    ),
    (
        "a typo in a field of a node",
        "name: x\nnodes: {a: {imgae: host}}\n",
        "lab.yaml:2:13: nodes.a.imgae: unknown field; did you mean image?",
    ),
    (
        "a field that nothing resembles",
        HEAD + "time: {colour: 3}\n",
        "lab.yaml:3:8: time.colour: unknown field; known here: drive, tdf, auto, clocks, on_violation, max_speed",
    ),
    (
        "a field with nothing written",
        HEAD + "seed:\n",
        "lab.yaml:3:1: seed: nothing is written here; write a value or remove the line",
    ),
    (
        "a list item with nothing written",
        HEAD + "links:\n  -\n",
        "lab.yaml:4:4: links[0]: nothing is written here; write a value or remove the line",
    ),
    ("a field written twice", HEAD + "seed: 1\nseed: 2\n", "lab.yaml:4:1: seed: written twice; the first is in line 3"),
    (
        "a list where a mapping belongs",
        "name: x\nnodes: [a, b]\n",
        "lab.yaml:2:8: nodes: must be a mapping, not a list; write for example nodes: {a: {}, b: {}}",
    ),
    (
        "text where a list belongs",
        HEAD + "links: a -- b\n",
        "lab.yaml:3:8: links: must be a list, not 'a -- b'; write for example links: [\"a -- b\"]",
    ),
    (
        "a list where text belongs",
        HEAD + "run: [{on: [a], exec: ping b}]\n",
        "lab.yaml:3:12: run[0].on: must be text, not a list",
    ),
    (
        "a lab name that is no file name",
        "name: my lab\nnodes: {a: {}}\n",
        "lab.yaml:1:7: name: 'my lab': a lab name has 1 to 64 letters, digits, dots, dashes and underscores, and does not begin with a dot or dash",
    ),
    (
        "a seed that is not whole",
        HEAD + "seed: 1.5\n",
        "lab.yaml:3:7: seed: 1.5: a seed must be a whole number from 0 to 9223372036854775807",
    ),
    ("a negative seed", HEAD + "seed: -1\n", "lab.yaml:3:7: seed: -1: a seed must be from 0 to 9223372036854775807"),
]


@pytest.mark.parametrize(
    ("text", "line"),
    [pytest.param(text, line, id=mistake) for mistake, text, line in (*YAML, *FIELDS)],
)
def test_a_mistake_is_told_in_one_line(text: str, line: str) -> None:
    with pytest.raises(LabError) as caught:
        loads(text, "lab.yaml")
    assert str(caught.value) == line
