"""Inferences of onnxruntime. A request has a file, the arrays that it reads, a number of threads,
and a batch that the arrays are repeated to, or nothing: then the session is run once. The answer has
the milliseconds of the run, and those of all its threads on processors."""
import time

import numpy as np
import onnxruntime

SESSION = None
REST = 0.1  # seconds in which its threads cease to look for more to do: they spin at first


def of(batch, x):
    return x if batch == 0 else np.ascontiguousarray(np.resize(x, (batch,) + x.shape[1:]))


def answer(line):
    global SESSION
    if line != "run":
        request = json.loads(line)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = request["threads"]
        session = onnxruntime.InferenceSession(request["path"], options)
        arrays, batch = np.load(request["arrays"]), request["batch"]
        SESSION = session, {x.name: of(batch, arrays["in." + x.name])
                            for x in session.get_inputs()}
    start, processor = time.perf_counter(), time.process_time()
    SESSION[0].run(None, SESSION[1])
    reply = {"ms": 1e3 * (time.perf_counter() - start),
             "processor": 1e3 * (time.process_time() - processor)}
    time.sleep(REST)
    return reply


print(json.dumps({"about": "onnxruntime " + onnxruntime.__version__, "blas": []}), flush=True)
for line in sys.stdin:
    try:
        reply = answer(line.rstrip("\n"))
    except Exception as e:
        reply = {"failed": "%s: %s" % (type(e).__name__, e)}
    print(json.dumps(reply), flush=True)
