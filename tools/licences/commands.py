"""Runs commands for the licence check."""
import os
import subprocess
import sys


def run(*command, folder=".", **environment):
    """Returns what a command prints; ends the program when the command fails."""
    done = subprocess.run(command, cwd=folder, env=os.environ | environment, capture_output=True, text=True)
    if done.returncode:
        fail(f"{' '.join(command[:4])} in {folder} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def fail(reason):
    """Ends the program because the licences cannot be read."""
    sys.exit(f"licences: cannot check: {reason}")
