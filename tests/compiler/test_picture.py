"""The picture holds every text of the automaton, folded, and nothing from the schema as markup."""

import re
from contextlib import suppress

import pytest

from cmm.compiler import build_automaton
from cmm.compiler.drawing import as_html, as_svg
from cmm.compiler.nfa import TEXT_FRAME
from cmm.compiler.picture import Arrow, FramePicture, as_text, label_of, layers_of, picture
from cmm.grammar import Unsupported, call_grammar, parse_functions
from cmm.grammar.formats import FORMATS
from cmm.grammar.json_schema import schema_grammar
from cmm.grammar.nodes import Grammar, Literal, choice

FUNCTIONS = parse_functions([
    {"name": "add", "parameters": {"a": "number"}},
    {"name": "greet<b>", "parameters": {"name": {"type": "string", "maxLength": 9}, "more": {"type": "object"}}},
])  # fmt: skip


def frames_of(grammar):
    return picture(build_automaton(grammar))


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["abc"], ["abc"]),
        (["abc", "abd"], ["ab", "[c-d]"]),
        (["abc", "xyc"], ["ab", "xy", "c"]),
        (["a", "ab"], ["a", "b"]),
    ],
)
def test_literal_text_is_one_arrow(texts, labels):
    [root] = frames_of(Grammar(choice(map(Literal, texts))))
    assert sorted(arrow.label for arrow in root.arrows) == sorted(labels)


def test_frames_are_named_where_they_are_entered():
    frames = frames_of(call_grammar(FUNCTIONS))
    labels = {arrow.label for frame in frames for arrow in frame.arrows}
    assert {'{"name": "', "[0-9]"} < labels
    assert any(label.startswith("<string of ..9>") for label in labels)
    entered = {label.split(">")[0][1:] for label in labels if label.startswith("<part")}
    assert entered <= {frame.name for frame in frames}


def test_every_frame_is_drawn_and_names_are_no_markup():
    frames = frames_of(call_grammar(FUNCTIONS))
    page = as_html(frames, "a < b", [("greet<b>", [("name", '{"type": "<i>"}')])])
    assert page.count("<details") == len(frames) + 2
    assert "<i>" not in page
    assert page.count("<svg ") == len(frames)
    assert "greet<b>" not in page
    assert "<title>a &lt; b</title>" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert as_svg(frames[0]).startswith("<svg ")


def test_the_text_has_a_line_for_each_arrow():
    frames = frames_of(schema_grammar({"enum": ["a", "b"]}))
    assert as_text(frames) == 'start:\n     0 -> 1    "\n     1 -> 2    [a-b]"  end'


OBJECT = {"type": "object"}
TREE = {"anyOf": [{"type": "array", "items": {"$ref": "#"}}, {"properties": {"a": {"$ref": "#"}}}]}


@pytest.mark.parametrize(
    "schema",
    [
        True, {}, OBJECT, {"type": "array"}, {"type": ["object", "array"]}, {"items": {"$ref": "#"}},
        {"type": "object", "properties": {"a": OBJECT}}, {"properties": {"a": True}}, TREE,
        {"type": "array", "minItems": 2, "items": OBJECT}, {"patternProperties": {"^a": OBJECT}},
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("form", FORMATS)
def test_free_values_are_drawn_too(schema, form):
    """Every state of every picture is reached from where its part is entered."""
    automata = [build_automaton(schema_grammar(schema))]
    function = {"name": "f", "parameters": {"type": "object", "properties": {"a": schema}}}
    with suppress(Unsupported):
        automata.append(build_automaton(FORMATS[form].grammar(parse_functions([function]))))
    for automaton in automata:
        entered = {(int(automaton.frame[state]), state) for state, *_ in automaton.calls.tolist()}
        parts = [frame for frame, _ in entered if frame != TEXT_FRAME]
        assert len(parts) == len(set(parts))  # entered in one state each
        frames = picture(automaton)
        for frame in frames:
            assert {arrow.source for arrow in frame.arrows} <= layers_of(frame).keys()
            assert len(set(frame.arrows)) == len(frame.arrows)
            assert as_svg(frame).count("<path") > len(frame.arrows)
        assert as_text(frames).count(" -> ") == sum(len(frame.arrows) for frame in frames)


def frame_of(*pairs):
    return FramePicture("x", 0, tuple(Arrow(a, b, f"{a}{b}") for a, b in pairs), frozenset())


@pytest.mark.parametrize(
    ("pairs", "layers"),
    [
        ([(0, 1), (1, 2)], {0: 0, 1: 1, 2: 2}),
        ([(0, 2), (0, 1), (1, 2)], {0: 0, 1: 1, 2: 2}),  # by the longest way
        ([(0, 1), (1, 0), (1, 1), (1, 2)], {0: 0, 1: 1, 2: 2}),  # not by one that leads back
        ([(0, 1), (5, 6)], {0: 0, 1: 1}),
    ],
)
def test_states_stand_to_the_right_of_those_that_lead_to_them(pairs, layers):
    assert layers_of(frame_of(*pairs)) == layers


def test_no_label_covers_another_and_no_state_lies_on_an_arrow():
    """Arrows that pass over columns have a place of their own in each."""
    frame = frame_of((0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3), (3, 3))
    drawn = as_svg(frame)
    labels = [tuple(map(int, found)) for found in re.findall(r'<text x="(\d+)" y="(\d+)"', drawn)]
    assert len(set(labels)) == len(labels) == 7
    states = re.findall(r'<g transform="translate\((\d+) (\d+)\)">', drawn)
    assert len(set(states)) == 4
    through = [point for path in re.findall(r'd="M[^C]+C([^"]+)"', drawn)
               for point in zip(*[iter(path.split())] * 2, strict=True)]  # fmt: skip
    assert not set(through) & set(states)


@pytest.mark.parametrize(
    ("found", "label"),
    [
        ([97], "a"),
        ([9], "\\x09"),
        ([48, 49, 57], "[0-19]"),
        (list(range(256)), "any"),
        ([b for b in range(32, 256) if b != 34], 'any but "'),
    ],
)
def test_labels(found, label):
    assert label_of(found) == label
