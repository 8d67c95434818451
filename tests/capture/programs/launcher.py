"""A launcher in Python: runs another script and hands its exit code on."""

import subprocess
import sys

sys.exit(subprocess.run([sys.executable, *sys.argv[1:]], check=False).returncode)
