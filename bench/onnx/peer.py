"""Inferences of onnxruntime. A request has a file, the arrays that it reads, and a number of
threads, or nothing: then the session is run once. The answer has the milliseconds of the run."""
import time

import numpy as np
import onnxruntime

SESSION = None


def answer(line):
    global SESSION
    if line != "run":
        request = json.loads(line)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = request["threads"]
        session = onnxruntime.InferenceSession(request["path"], options)
        arrays = np.load(request["arrays"])
        SESSION = session, {x.name: arrays["in." + x.name] for x in session.get_inputs()}
    start = time.perf_counter()
    SESSION[0].run(None, SESSION[1])
    return {"ms": 1e3 * (time.perf_counter() - start)}


print(json.dumps({"about": "onnxruntime " + onnxruntime.__version__, "blas": []}), flush=True)
for line in sys.stdin:
    try:
        reply = answer(line.rstrip("\n"))
    except Exception as e:
        reply = {"failed": "%s: %s" % (type(e).__name__, e)}
    print(json.dumps(reply), flush=True)
