"""The losses of scikit-learn's forests on numbers that gbt_test.go draws, too, as peer.json:

    python peer.py > peer.json
"""
import json

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

state = 1


def draw(n):
    global state
    state = (state * 1103515245 + 12345) % 2**31
    return (state >> 8) % n


def data(rows, cols, classes):
    x = np.zeros((rows, cols), np.float32)
    y = np.zeros(rows)
    for i in range(rows):
        for j in range(cols):
            x[i, j] = draw(5) if j % 3 == 2 else draw(1 << 16) / 1024 - 32
        y[i] = x[i, 0] + x[i, 1] * x[i, 2] / 4 + draw(1 << 10) / 64
        if classes:
            y[i] = y[i] > 0
    return x, y


def loss(model, x, y, classes):
    if classes:
        return [-float(np.mean(np.log(np.where(y == 1, p[:, 1], p[:, 0]))))
                for p in model.staged_predict_proba(x)]
    return [float(np.mean((says - y) ** 2)) for says in model.staged_predict(x)]


cases = []
for rows, cols, depth, l2, rate, classes in [(2000, 6, 4, 0.0, 0.1, False),
                                             (3000, 7, 6, 1.0, 0.2, True),
                                             (700, 5, 3, 10.0, 0.5, False),
                                             (900, 4, 5, 0.5, 0.3, True)]:
    x, y = data(rows, cols, classes)
    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    model = kind(max_iter=30, max_depth=depth, max_leaf_nodes=None, l2_regularization=l2,
                 learning_rate=rate, early_stopping=False).fit(x, y)
    cases.append(dict(rows=rows, cols=cols, depth=depth, l2=l2, rate=rate, classes=classes,
                      losses=loss(model, x, y, classes)))
print(json.dumps(cases))
