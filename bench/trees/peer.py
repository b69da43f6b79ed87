"""Learns gradient-boosted trees of float32 columns and float64 labels of files by scikit-learn's
histograms, and prints CPU seconds, the loss of the training samples and that of the others."""
import sys
import time

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

columns, labels, loss = sys.argv[1:4]
train, trees, depth, least = (int(x) for x in sys.argv[4:8])
rate, l2 = float(sys.argv[8]), float(sys.argv[9])
y = np.fromfile(labels, "<f8")
x = np.fromfile(columns, "<f4").reshape(-1, len(y)).T
kind = HistGradientBoostingClassifier if loss == "logistic" else HistGradientBoostingRegressor
model = kind(max_iter=trees, max_depth=depth, max_leaf_nodes=None, learning_rate=rate,
             l2_regularization=l2, min_samples_leaf=least, early_stopping=False)
began = time.process_time()
model.fit(x[:train], y[:train])
took = time.process_time() - began


def mean(x, y):
    if loss == "logistic":
        p = model.predict_proba(x)
        return -np.mean(np.log(np.where(y == 1, p[:, 1], p[:, 0])))
    return np.mean((model.predict(x) - y) ** 2)


print(took, mean(x[:train], y[:train]), mean(x[train:], y[train:]))
