"""Draws random designs, and has scikit-learn solve them: python3 lasso.py > lasso.json

The penalty of this package is lambda = 2 n alpha of scikit-learn's.
"""
import json

import numpy
import sklearn
from sklearn.linear_model import Lasso

draw = numpy.random.default_rng(1)
cases = []
for rows, cols, mix in [(20, 30, 0.0), (25, 12, 0.6)]:
    x = draw.standard_normal((rows, cols))
    for j in range(1, cols):
        x[:, j] = mix * x[:, j - 1] + (1 - mix**2) ** 0.5 * x[:, j]
    x = x.round(3)
    y = (3 * x[:, 0] - 2 * x[:, cols // 2] + 0.3 * draw.standard_normal(rows)).round(3)
    for part in [0.5, 0.1, 0.01]:
        alpha = part * abs(x.T @ y).max() / rows
        fit = Lasso(alpha=alpha, fit_intercept=False, tol=1e-15, max_iter=1000000).fit(x, y)
        cases.append({"x": x.T.tolist(), "y": y.tolist(), "lambda": 2 * rows * alpha,
                      "b": fit.coef_.tolist()})
print(json.dumps({"made_by": "scikit-learn " + sklearn.__version__, "cases": cases}))
