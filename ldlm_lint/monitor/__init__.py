"""Training logs: what their lines say, as series, and what is wrong with a run. Free of torch.

Reading: ``reader.LogReader`` turns text into records, incrementally and in constant memory. ``read(chunk)`` yields every
framed `Line` with its records (none where it says nothing), so that events are matched in the same pass; ``close()``
yields what is left. ``sources.find(path)`` lists what a file or folder holds, structured sources first, and
``sources.read(source, follow=...)`` reads one; with ``follow`` it yields None whenever there is nothing new.
A series is a source, a rank, an actor, a template's identity and a column: never a key alone.
"""
