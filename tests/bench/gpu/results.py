"""results.json and table.md: what this run and earlier ones found, written at once, so that a run may be cut anywhere."""
import json
import os
import time

import table
from tools import ROOT


class Results:
    """A record a stage. Of c, d and g, "data" is {model: {"shape", "entries": {name: entry}}}; runs add entries, one by
    one, and each has a verdict and the commit that it was measured at. Of the others, "data" is the last run's."""

    def __init__(self, tools):
        self.path, self.table = tools.out / "results.json", tools.out / "table.md"
        self.fake, self.again = tools.args.fake, tools.args.again
        done = tools.run("git", "-C", ROOT, "describe", "--always", "--dirty", "--exclude=*", check=False)
        self.stint, self.commit = tools.stint("--version").stdout.strip(), done.stdout.strip()
        self.all = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.failed = False

    def versions(self):
        return {"stint": self.stint, "commit": self.commit, "when": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())}

    def write(self):
        for path, text in ((self.path, json.dumps(self.all, indent=1) + "\n"), (self.table, table.markdown(self.all))):
            new = path.with_suffix(".new")
            new.write_text(text)
            os.replace(new, path)

    def keep(self, stage, verdict, words, data, seconds):
        """A stage's end. One that was not tried leaves what it found before."""
        if verdict != "skipped" or not self.models(stage):
            self.all[stage] = {"verdict": verdict, "words": words, "seconds": round(seconds, 1), "with": self.versions(),
                               "fake": self.fake, "data": data}
            self.write()
        self.failed |= verdict == "FAILED"
        print(f"{stage}: {verdict}: {words} ({seconds:.0f} s)", flush=True)

    # --- stages that are gathered: c, d, g ---

    def models(self, stage):
        """{model: {"shape", "entries"}} so far."""
        record = self.all.get(stage, {})
        return record["data"] if stage in "cdg" and record.get("fake") == self.fake else {}

    def entries(self, stage, model, shape):
        found = self.models(stage).get(model)
        return found["entries"] if found and found["shape"] == shape else {}

    def done(self, stage, model, shape, name, number):
        """Found at this commit already."""
        e = self.entries(stage, model, shape).get(name)
        return bool(e) and not self.again and e["with"]["commit"] == self.commit and (
            number in e or e["verdict"] == "out of memory")

    def add(self, stage, model, shape, name, entry):
        """Keeps one entry at once; of the same model only those of the same shape stay."""
        verdict = "FAILED" if "error" in entry else "ok"
        entries = self.entries(stage, model, shape) | {name: {"verdict": verdict} | entry | {"with": self.versions()}}
        data = self.models(stage) | {model: {"shape": shape, "entries": entries}}
        self.all[stage] = {"verdict": "cut", "words": "did not come to its end", "seconds": 0, "with": self.versions(),
                           "fake": self.fake, "data": data}
        self.write()

    def gather(self, stage, words, faults, seconds):
        """A stage's end; `words` and `faults` beside what its entries, of this run and others, say of themselves."""
        data = self.models(stage)
        wrong = [e for m in data.values() for e in m["entries"].values() if e["verdict"] == "FAILED"]
        self.keep(stage, "FAILED" if wrong or faults else "ok", "; ".join([words] + faults), data, seconds)
