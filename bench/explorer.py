# SPDX-License-Identifier: MIT
"""From the event of the slider to the drawn curve, in a browser: the times of docs/performance.md.

    BAYESAIM_PROGRAM=build/release/bayesaim python3 bench/explorer.py [--moves 60]
"""
import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "explorer"))
from browser import Page  # noqa: E402
from conftest import Explorer  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

CURVES = {
    "softmax, 100 points": "curve",
    "softmax T = 3, 100 points": "curve?tokens=3",
    "hardmax T = 3, 100 points": "curve?channel=hardmax&tokens=3",
    "softmax, 500 points": "curve?points=500",
    "hardmax T = 3, 500 points": "curve?channel=hardmax&tokens=3&points=500",
}
DRAWN = "return performance.getEntriesByName('followed').map(entry => entry.duration)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moves", type=int, default=60)
    moves = parser.parse_args().moves
    explorer = Explorer("--no-browser")
    page = Page(explorer)
    try:
        print(f"page: {len(explorer.get('/')[1].encode()) / 1000:.0f} kB")
        for name, state in CURVES.items():
            page.open(state)
            page.until(lambda: page.run(DRAWN))
            for i in range(moves):
                drawn = len(page.run(DRAWN))
                page.press("width", Keys.ARROW_RIGHT if i < moves / 2 else Keys.ARROW_LEFT)
                page.until(lambda: len(page.run(DRAWN)) > drawn)
            times = sorted(page.run(DRAWN)[-moves:])
            print(f"{name}: median {statistics.median(times):.0f} ms, nine of ten below {times[int(0.9 * moves)]:.0f} ms")
    finally:
        page.close()
        explorer.end()


if __name__ == "__main__":
    main()
