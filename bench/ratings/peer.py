# Factorises a matrix by LIBMF: for each step size and number of passes the seconds of the whole
# fit, and the error of elements that are held out.
import json, os, sys, time

out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # LIBMF says where it was found


def say(reply):
    print(json.dumps(reply), file=out, flush=True)


try:
    import numpy as np
    from libmf import mf
except ImportError as e:
    say({"missing": str(e)})
    sys.exit()


def read(name):
    return np.fromfile(os.path.join(task["dir"], name), "<f4").reshape(-1, 3)


task = json.load(sys.stdin)
train, held = read("train"), read("held")
row, col = held[:, 0].astype(int), held[:, 1].astype(int)
for rate in task["rates"]:
    for passes in task["passes"]:
        m = mf.MF(k=task["rank"], nr_iters=passes, nr_threads=task["threads"], eta=rate,
                  lambda_p1=0.0, lambda_q1=0.0, lambda_p2=task["lambda"],
                  lambda_q2=task["lambda"], quiet=True)
        begun = time.time()
        m.fit(train)
        seconds = time.time() - begun
        p, q = m.p_factors()[row], m.q_factors()[col]  # its predict() reads other places
        error = (p * q).sum(1) - held[:, 2]
        say({"rate": rate, "passes": passes, "seconds": seconds,
             "rmse": float(np.sqrt((error.astype(float) ** 2).mean()))})
