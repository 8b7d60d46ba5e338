"""What the programs of this folder share: the arguments and the document that they print."""

import json
import sys


class Recorder:
    """Calls functions and keeps what they return or raise."""

    def __init__(self):
        self.steps = []

    def __call__(self, step, call):
        try:
            result = call()
            self.steps.append({"step": step, "result": getattr(result, "body", result)})
        except Exception as error:
            self.steps.append({"step": step, "error": describe(error)})

    def print(self):
        json.dump(self.steps, sys.stdout)


def describe(error):
    """Return the class of an exception of a client, and the answer that it stands for where there is one."""
    if type(error).__module__.partition(".")[0] not in ("elastic_transport", "elasticsearch", "opensearchpy"):
        raise error  # a mistake of the program
    described = {"class": type(error).__name__}
    if isinstance(getattr(error, "status_code", None), int):  # opensearch-py: "N/A" or "TIMEOUT" without an answer
        described["status"] = error.status_code
        described["body"] = error.body if hasattr(error, "body") else error.info
    return described


def arguments():
    """The address of the search API, the name of the index, and what to put into it."""
    url, index, fixture = sys.argv[1:]
    with open(fixture, encoding="utf-8") as file:
        return url, index, json.load(file)
