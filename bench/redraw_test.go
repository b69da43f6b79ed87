package main

import "testing"

// TestPrinted: what was printed is drawn: a panel a table, a line a row, a point a cell that
// has a time.
func TestPrinted(t *testing.T) {
	f := printed(`text
| mean over the models | 65 % |
|---|---|
| all | 0.98 |

| titanx | GB | 30 % | 50 % | thesis |
|---|---|---|---|---|
| resnet | 10.79 | 0.992 | 1.034 (1.01) | −87.6 %: 1.67 |
| moe | 4.72 | 1.5 | – | −93.7 %: 4.72 |

| s64 | κ | 65 % | thesis |
|---|---|---|---|
| wgan | 91 | 1.20 (1.10) | −80 %: 2.00 (2.10) |
`)
	if len(f.panels) != 2 || f.panels[0].title != "auto, titanx" || len(f.panels[0].lines) != 2 ||
		len(f.panels[1].lines) != 1 {
		t.Fatalf("%+v", f)
	}
	resnet, moe := f.panels[0].lines[0], f.panels[0].lines[1]
	if resnet.name != "resnet" || len(resnet.xys) != 2 || resnet.xys[1].X != 50 ||
		resnet.xys[1].Y != 1.034 || len(moe.xys) != 1 || moe.xys[0].Y != 1.5 {
		t.Errorf("%+v", f.panels[0])
	}
	if wgan := f.panels[1].lines[0]; len(wgan.xys) != 1 || wgan.xys[0].X != 65 ||
		wgan.xys[0].Y != 1.2 {
		t.Errorf("%+v", wgan)
	}
}
