"""What is said of a call once for its statement is what is true of the call itself."""

from __future__ import annotations

import pytest
from astroid import nodes

from ldlm_lint.python import sites
from ldlm_lint.python.guards import guards_of
from ldlm_lint.python.places import by_function, function_of
from ldlm_lint.python.tree import parse
from ldlm_lint.python.walks import nodes_of, release
from ldlm_lint.source import Kind, Source

PROGRAM = b'''
@decorated(made())
def train(loader, rank=default(), log=lambda x: shown(x)):
    """Trains."""
    if empty(loader) and quiet():
        return stopped()
    for step, batch in enumerate(prepared(loader)):
        loss = model(batch) if ready(batch) else other(batch)
        rank == 0 and save(model)
        seen = [one(x) for x in numbers(batch) for y in more(x) if kept(y)]
        table[key(batch)] = {name(x): [value(x)] for x in seen}
        assert fine(loss), failed(loss)
        if step % 100 == 0:
            print(loss.item(), str(step), *shown(loss), **given(loss))
        elif main(rank):
            with opened(), torch.no_grad() as context:
                raise Problem(text(step))
        while more(loader):
            total += (yield sent(step)) or later(step)
        for place[first(step)] in range(1):
            del place[last(step)]
    try:
        run(lambda: inner(rank))
    except kind() as error:
        handled(error)
    else:
        class Local(base()):
            made = at(once)
    return await_(loader)


async def serve():
    async with opened() as one:
        async for part in one.parts():
            await sent(part)

end(train) if __name__ == "__main__" else imported()
'''


@pytest.fixture
def module():
    found = parse(Source.from_bytes("/x/train.py", PROGRAM, Kind.PYTHON), "train").module
    yield found
    release(found)


def test_site_of_a_statement_is_that_of_its_calls(module):
    calls = list(nodes_of(module, nodes.Call))
    assert len(calls) > 40
    assert [sites.site_of(call) for call in calls] == [sites._found(call) for call in calls]


def test_sites_of_a_block_change_behind_what_may_leave_it():
    text = b"""
def report(step, rank):
    counted = count(step)
    begun(counted)
    if rank != 0:
        return leave(step)
    first(step)
    second(step)
    if step % 100:
        return
    third(step)
    assert is_main(rank)
    fourth(step)
"""
    module = parse(Source.from_bytes("/x/report.py", text, Kind.PYTHON), "report").module
    for calls in (nodes_of(module, nodes.Call), reversed(list(nodes_of(module, nodes.Call)))):
        found = {call.func.name: (guards_of(call), sites.site_of(call).rare) for call in calls}
        assert found == {
            **dict.fromkeys(("count", "begun"), ((), False)),
            "leave": (("+",), False),
            **dict.fromkeys(("first", "second"), (("*",), False)),
            **dict.fromkeys(("third", "is_main", "fourth"), (("*",), True)),
        }
        for one in nodes_of(module, nodes.NodeNG):
            one.__dict__.pop(sites._SITE, None)
    release(module)


def test_sites_tell_calls_apart(module):
    found = {call.func.as_string(): sites.site_of(call) for call in nodes_of(module, nodes.Call)}
    guards = {call.func.as_string(): set(guards_of(call)) for call in nodes_of(module, nodes.Call)}
    assert guards["save"] - guards["loss.item"] == {"*"}
    assert found["model"].lines == (7,) and found["prepared"].lines == ()
    assert found["print"].rare and found["failed"].rare and not found["one"].rare
    assert len(found["one"].loops) == 3 and found["one"].lines[-1] == 7
    assert found["inner"].loops == () and found["value"].scope == "train" and found["base"].scope == "train"


def test_nodes_by_function_are_those_of_the_way_up(module):
    kinds = (nodes.FunctionDef, nodes.Call, nodes.Name, nodes.Const)
    found = by_function(module, nodes_of(module, kinds))
    assert list(found) == [module, *nodes_of(module, nodes.FunctionDef)]
    assert all(function_of(node) is function for function, inner in found.items() for node in inner)
    assert sum(map(len, found.values())) + 2 == len(list(nodes_of(module, kinds)))
