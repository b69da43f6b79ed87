"""Writes muon.json: steps of torch.optim.Muon, with weight decay and the scale of
match_rms_adamw, on matrices in float64. Its iterations round to bfloat16; what says so is
another type here, so that what is compared is the algorithm. Made with PyTorch 2.15:

    python3 muon.py > muon.json
"""

import json

import torch

torch.manual_seed(5)
torch.bfloat16 = torch.float64
cases = []
for rows, columns in [(3, 5), (5, 3), (4, 4), (1, 4)]:
    start = torch.randn(rows, columns).double()
    grads = [torch.randn(rows, columns).double() for _ in range(4)]
    w = start.clone().requires_grad_()
    by = torch.optim.Muon([w], lr=0.05, weight_decay=0.2, momentum=0.9,
                          adjust_lr_fn="match_rms_adamw")
    for g in grads:
        w.grad = g
        by.step()
    flat = lambda t: [round(x, 9) for x in t.detach().flatten().tolist()]
    cases.append({"rows": rows, "columns": columns, "start": flat(start),
                  "gradients": [flat(g) for g in grads], "end": flat(w)})
print(json.dumps(cases, separators=(",", ":")).replace('{"rows', '\n{"rows'))
