"""The programs of the README and of docs/clients.md run as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

FOLDER = Path(__file__).parent.parent
PAGES = [FOLDER / "README.md", FOLDER.parent.parent / "docs" / "clients.md"]
PLACES = {
    "redis://127.0.0.1:6379/0": os.environ["HERO_TEST_REDIS"],
    "unix:///run/hero/api.sock": os.environ["HERO_TEST_API"],
}


class Readme(unittest.TestCase):
    def test_every_program_of_the_pages_runs(self) -> None:
        text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
        programs = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
        self.assertGreaterEqual(len(programs), 5)
        for program in programs:
            for example, place in PLACES.items():
                program = program.replace(example, place)
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "program.py"
                file.write_text(program, encoding="utf-8")
                done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, f"{program}\n{done.stderr}")


if __name__ == "__main__":
    unittest.main()
