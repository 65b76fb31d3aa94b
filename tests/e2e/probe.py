"""Asks a URL several times a second until it is stopped; writes each failure down. Runs on a machine, Python 3.9."""

import json
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

URL, PATH = sys.argv[1], Path(sys.argv[2])
asked, failed = 0, []
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
while True:
    began = time.time()
    asked += 1
    try:
        with opener.open(URL, timeout=3) as answer:
            answer.read()
    except urllib.error.HTTPError:
        pass  # an answer, too
    except OSError as error:
        failed.append({"at": began, "why": str(error)})
    if asked % 5 == 0 or (failed and failed[-1]["at"] == began):
        PATH.with_suffix(".new").write_text(json.dumps({"asked": asked, "failed": failed}))
        PATH.with_suffix(".new").replace(PATH)
    time.sleep(0.2)
