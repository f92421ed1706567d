"""Training logs: reads their values as series and judges the health of a run. Free of torch.

Reading: ``reader.LogReader`` turns text into records, incrementally and in constant memory. ``read(chunk)`` yields
every framed `Line` with its records (none if it has none), so that events are matched in the same pass; ``close()``
yields the rest. ``sources.find(path)`` lists the sources of a file or folder, structured ones first, and
``sources.read(source, follow=...)`` reads one; with ``follow`` it yields None while there is nothing new. A series is a
source, a rank, an actor, a template's identity and a column: never a key alone.
"""
