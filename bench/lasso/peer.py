"""Fits a design whose columns are in files of a directory. For each line of a penalty and a
tolerance it writes coefficients to the file b, and prints the CPU seconds of the fit."""
import os
import sys
import time
import warnings

import numpy
import scipy.sparse
import sklearn.linear_model

model, where = sys.argv[1:3]
rows, cols = int(sys.argv[3]), int(sys.argv[4])
warnings.simplefilter("ignore")  # of fits that are to be loose


def read(name, kind):
    return numpy.fromfile(os.path.join(where, name), kind)


y, value, start = read("y", "<f8"), read("value", "<f8"), read("start", "<i4")
if len(start):
    x = scipy.sparse.csc_matrix((value, read("row", "<i4"), start), (rows, cols))
    x = x.tocsr() if model == "l1-lr" else x  # as liblinear wants it
else:
    x = value.reshape(cols, rows).T
    x = numpy.ascontiguousarray(x) if model == "l1-lr" else x

for line in sys.stdin:
    l1, tol = (float(v) for v in line.split())
    if model == "lasso":
        m = sklearn.linear_model.Lasso(alpha=l1 / rows, fit_intercept=False, copy_X=False,
                                       max_iter=1000000, tol=tol)
    else:
        m = sklearn.linear_model.LogisticRegression(penalty="l1", C=1 / l1, solver="liblinear",
                                                    fit_intercept=False, max_iter=100000, tol=tol,
                                                    random_state=1)
    began = time.process_time()
    m.fit(x, y)
    took = time.process_time() - began
    m.coef_.ravel().astype("<f8").tofile(os.path.join(where, "b"))
    print(took, flush=True)
