# SPDX-License-Identifier: MIT
"""Commands that write files, each small: what is killed, starved and disturbed."""

import dataclasses
import pathlib
import shutil

from bench import content, names

STUDY = """
width = 0.5
[[run]]
estimator = "theory"
alpha = "0.1x:1.1x:8"
[[run]]
estimator = "amp"
alpha = [0.1, 0.13]
dim = 20
seeds = 6
max_iterations = 1000
"""

MODEL = ["--width", "0.5", "--threads", "1", "--quiet"]


@dataclasses.dataclass
class Work:
    """A command that writes into a folder."""

    name: str
    arguments: list  # {} stands for the folder
    files: list  # what it writes, relative to the folder
    checkpoint: str = ""  # of these files; must be given with --resume if it exists
    inputs: dict = dataclasses.field(default_factory=dict)  # files that are made before, by name
    other: list = dataclasses.field(default_factory=lambda: ["--seed", "9"])  # makes another result
    grows: bool = False  # files at their final names may be those of part of the work

    def prepare(self, bench, folder):
        for name, source in self.inputs.items():
            target = pathlib.Path(folder) / name
            if callable(source):
                source(bench, target)
            else:
                target.write_text(source)

    def command(self, folder, again=False):
        words = [word.replace("{}", str(folder)) for word in self.arguments]
        if self.checkpoint and again and (pathlib.Path(folder) / self.checkpoint).exists():
            words.append("--resume")
        return words

    def undisturbed(self, bench, folder, extra=()):
        """Runs it, and returns what it wrote."""
        self.prepare(bench, folder)
        run = bench.run([*self.command(folder), *extra])
        assert run.code == 0, f"{self.name}: {run.err}"
        return self.result(folder), names(folder)

    def result(self, folder):
        """The content of its files; the checkpoint has times, and is tested by what is made from it."""
        return {name: content(pathlib.Path(folder) / name) for name in self.files
                if name != self.checkpoint and (pathlib.Path(folder) / name).exists()}


_made = {}


def _data(bench, target):
    if "data" not in _made:
        file = bench.place("inputs") / "data.h5"
        run = bench.run(["generate", "--alpha", "0.5", "--dim", "30", "--output", file, *MODEL])
        assert run.code == 0, run.err
        _made["data"] = file.read_bytes()
    target.write_bytes(_made["data"])


def _estimate(bench, target):
    if "estimate" not in _made:
        folder = bench.place("inputs")
        _data(bench, folder / "data.h5")
        run = bench.run(["fit", folder / "data.h5", "--iterations", "5", "--quiet", "--output", folder / "e.h5"])
        assert (folder / "e.h5").exists(), run.err
        _made["estimate"] = (folder / "e.h5").read_bytes()
    target.write_bytes(_made["estimate"])


def _run_directory(bench, target):
    if "run" not in _made:
        folder = bench.place("inputs")
        (folder / "study.toml").write_text(STUDY)
        run = bench.run(["sweep", folder / "study.toml", "--quiet", "--output", folder / "run"])
        assert run.code == 0, run.err
        _made["run"] = folder / "run"
    shutil.copytree(_made["run"], target)


def _finished_figure(bench, target):
    if "figure" not in _made:
        folder = bench.place("inputs")
        run = bench.run(FIGURE.command(folder))
        assert run.code == 0, run.err
        _made["figure"] = folder / "figures" / "runs"
    shutil.copytree(_made["figure"], target / "runs")


TABLES = ["results.csv", "summary.csv", "provenance.json"]

SWEEP = Work("sweep", ["sweep", "{}/study.toml", "--output", "{}/run", "--threads", "2", "--quiet"],
             ["run/" + name for name in TABLES], inputs={"study.toml": STUDY}, grows=True)
AMP = Work("amp", ["amp", "--alpha", "0.1,0.12", "--dim", "30", "--seeds", "2", "--checkpoint", "{}/run.h5",
                   "--checkpoint-every", "2", "--output", "{}/amp.csv", "--record", "{}/record.csv", *MODEL],
           ["run.h5", "amp.csv", "record.csv"], checkpoint="run.h5")
GD = Work("gd", ["gd", "--alpha", "0.2", "--dim", "30", "--starts", "2", "--steps", "100", "--no-amp", "--checkpoint",
                 "{}/run.h5", "--checkpoint-every", "4", "--output", "{}/gd.csv", "--record", "{}/record.csv", *MODEL],
          ["run.h5", "gd.csv", "record.csv"], checkpoint="run.h5")
ERM = Work("erm", ["erm", "--alpha", "0.2", "--dim", "30", "--regularization", "0.05", "--seeds", "2", "--checkpoint",
                   "{}/run.h5", "--checkpoint-every", "2", "--output", "{}/erm.csv", "--record", "{}/record.csv",
                   *MODEL],
           ["run.h5", "erm.csv", "record.csv"], checkpoint="run.h5")
FIGURE = Work("figure", ["figure", "hardmax-small-width", "--output", "{}/figures", "--threads", "2", "--quiet"],
              [f"figures/hardmax-small-width{end}" for end in (".pdf", ".svg", ".png", ".csv", ".json", ".gnuplot")],
              other=[])
GENERATE = Work("generate", ["generate", "--alpha", "0.6", "--dim", "80", "--output", "{}/data.h5", *MODEL],
                ["data.h5"])

KILLED = [SWEEP, AMP, GD, ERM, FIGURE, GENERATE]

# The same and others with few writes, so that each of these can fail in turn.
WRITING = [
    dataclasses.replace(GENERATE, arguments=["generate", "--alpha", "0.6", "--dim", "20", "--output", "{}/data.h5",
                                             *MODEL]),
    Work("amp", ["amp", "--alpha", "0.1", "--dim", "20", "--iterations", "8", "--checkpoint", "{}/run.h5",
                 "--checkpoint-every", "5", "--output", "{}/amp.csv", "--record", "{}/record.csv", *MODEL],
         ["run.h5", "amp.csv", "record.csv"], checkpoint="run.h5"),
    Work("gd", ["gd", "--alpha", "0.2", "--dim", "20", "--steps", "30", "--no-amp", "--checkpoint", "{}/run.h5",
                "--checkpoint-every", "15", "--output", "{}/gd.csv", "--record", "{}/record.csv", *MODEL],
         ["run.h5", "gd.csv", "record.csv"], checkpoint="run.h5"),
    Work("erm", ["erm", "--alpha", "0.2", "--dim", "20", "--regularization", "0.05", "--checkpoint", "{}/run.h5",
                 "--checkpoint-every", "90", "--output", "{}/erm.csv", *MODEL], ["run.h5", "erm.csv"], checkpoint="run.h5"),
    Work("fit", ["fit", "{}/data.h5", "--iterations", "60", "--quiet", "--output", "{}/estimate.h5"], ["estimate.h5"],
         inputs={"data.h5": _data}, other=[]),
    Work("predict", ["predict", "{}/estimate.h5", "{}/data.h5", "--quiet", "--output", "{}/predictions.h5"],
         ["predictions.h5"], inputs={"data.h5": _data, "estimate.h5": _estimate}, other=[]),
    Work("theory", ["theory", "--alpha", "0.1,0.2", "--output", "{}/theory.csv", "--plot", "{}/theory.png", *MODEL],
         ["theory.csv", "theory.png"], other=["--tokens", "3"]),
    Work("denoise", ["denoise", "--dim", "30", "--noise-variance", "0.5", "--output", "{}/denoise.csv", *MODEL],
         ["denoise.csv"]),
    Work("spectrum", ["spectrum", "--noise-variance", "0.1", "--dim", "50", "--output", "{}/spectrum.json", "--plot",
                      "{}/spectrum.svg", *MODEL], ["spectrum.json", "spectrum.svg"], other=["--scale", "2"]),
    Work("phase", ["phase", "--alpha", "0.1:0.2:3", "--width", "0.5:1:3", "--output", "{}/phase.csv", "--plot",
                   "{}/phase.pdf", "--quiet"], ["phase.csv", "phase.pdf"], other=["--tokens", "3"]),
    Work("sweep", ["sweep", "{}/study.toml", "--output", "{}/run", "--threads", "1", "--quiet"],
         ["run/" + name for name in TABLES],
         inputs={"study.toml": 'estimator = "theory"\nwidth = 0.5\nalpha = [0.1, 0.11, 0.12]\n'}, other=[], grows=True),
    Work("merge", ["merge", "{}/part", "--output", "{}/merged", "--quiet"], ["merged/" + name for name in TABLES],
         inputs={"part": _run_directory}, other=[], grows=True),
    Work("plot", ["plot", "{}/part", "--output", "{}/plot.png"], ["plot.png"], inputs={"part": _run_directory},
         other=[]),
    dataclasses.replace(FIGURE, inputs={"figures": _finished_figure}),
]
