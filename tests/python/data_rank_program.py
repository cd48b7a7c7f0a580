"""A rank of the tests in data_ranks.py: goes through a pass and writes what it had. Arguments: FILE FOLDER JSON-OPTIONS."""
import json
import os
import pathlib
import sys

import muster.data

path, folder, options = sys.argv[1], pathlib.Path(sys.argv[2]), json.loads(sys.argv[3])
rank = int(os.environ["MUSTER_RANK"])
steps, state = options.get("steps"), options.get("state")
seen, counts = [], []
if options["use"] == "sampler":
    sampler = muster.data.Sampler(muster.data.Dataset(path))
    if state:
        sampler.load_state_dict(state)
    for index in sampler:
        seen.append(index)
        if len(seen) == steps:
            break
    state = sampler.state_dict()
    why = ""
else:
    loader = muster.data.Loader(path, batch_size=4, as_="buffer", memory=options.get("memory", "automatic"))
    assert (loader.rank, loader.size) == (rank, int(os.environ["MUSTER_WORLD_SIZE"]))
    if state:
        loader.load_state_dict(state)
    data = muster.data.Dataset(path, as_="buffer")
    for batch in loader:
        for image, index, label in zip(batch.images.tolist(), batch.samples, batch.labels.tolist()):
            assert (image, label) == (data[index][0].tolist(), data[index][1])
        seen += batch.samples
        counts.append(batch.global_count)
        if len(counts) == steps:
            break
    state, why = loader.state_dict(), loader.why
(folder / f"{rank}.json").write_text(json.dumps({"seen": seen, "counts": counts, "state": state, "why": why}))
print("rank", rank, "is done")
