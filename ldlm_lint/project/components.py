"""The strongly connected components of a graph: files with cyclic imports are one component."""

from __future__ import annotations

from collections.abc import Sequence


def components(edges: Sequence[Sequence[int]]) -> list[list[int]]:
    """The components of the graph with these edges from each node, each after all that it leads to (Tarjan, without
    recursion)."""
    order = [0] * len(edges)
    lowest = [0] * len(edges)
    done = [False] * len(edges)
    found: list[list[int]] = []
    stack: list[int] = []
    count = 0
    for root in range(len(edges)):
        if order[root]:
            continue
        path = [(root, iter(edges[root]))]
        count += 1
        order[root] = lowest[root] = count
        stack.append(root)
        while path:
            node, targets = path[-1]
            fresh = next((one for one in targets if _is_fresh(one, node, order, lowest, done)), None)
            if fresh is not None:
                count += 1
                order[fresh] = lowest[fresh] = count
                stack.append(fresh)
                path.append((fresh, iter(edges[fresh])))
                continue
            path.pop()
            if path:
                parent = path[-1][0]
                lowest[parent] = min(lowest[parent], lowest[node])
            if lowest[node] == order[node]:
                group = _taken(stack, node)
                for one in group:
                    done[one] = True
                found.append(group)
    return found


def _is_fresh(target: int, node: int, order: list[int], lowest: list[int], done: list[bool]) -> bool:
    """Whether a target was not seen before; one on the stack joins the node's component."""
    if not order[target]:
        return True
    if not done[target]:
        lowest[node] = min(lowest[node], order[target])
    return False


def _taken(stack: list[int], node: int) -> list[int]:
    """Pop the stack down to a node."""
    group = [stack.pop()]
    while group[-1] != node:
        group.append(stack.pop())
    return group
