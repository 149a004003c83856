"""What a model did in TensorFlow, written beside it.

FOLDER/case.json says how the model is run:

  model      its file or folder, in this one
  init       the node that initialises it, or null
  signature  of a SavedModel, or null
  batch      rows of a feed in a step
  feeds      by name, a .npy or .json file: row k * batch and on are those of step k
  fetch      what gives the loss
  targets    what else a step runs
  losses     one a step
  predict    once the model has been trained: signature, feeds, fetch, and the
             value, a .npy file; or null
"""

import json

import numpy as np


class Recording:
    """Collects what is fed and what comes of it; write() makes the files."""

    def __init__(self, folder, model, batch, fetch, signature=None, init=None,
                 targets=()):
        self.folder = folder
        self.case = {
            "model": model, "init": init, "signature": signature,
            "batch": batch, "feeds": {}, "fetch": fetch,
            "targets": list(targets), "losses": [], "predict": None,
        }

    def feed(self, name, rows):
        """All rows of all steps."""
        self.case["feeds"][name] = self._array(f"feed_{len(self.case['feeds'])}",
                                               rows)

    def loss(self, value):
        self.case["losses"].append(float(value))

    def predict(self, feeds, fetch, value, signature=None):
        self.case["predict"] = {
            "signature": signature, "fetch": fetch,
            "feeds": {name: self._array(f"predict_{i}", rows)
                      for i, (name, rows) in enumerate(feeds.items())},
            "value": self._array("predicted", value),
        }

    def write(self):
        text = json.dumps(self.case, indent=1)
        (self.folder / "case.json").write_text(text + "\n")

    def _array(self, name, rows):
        rows = np.asarray(rows)
        if rows.dtype.kind == "S":
            texts = [text.decode() for text in rows]
            (self.folder / f"{name}.json").write_text(json.dumps(texts))
            return f"{name}.json"
        np.save(self.folder / f"{name}.npy", rows)
        return f"{name}.npy"
