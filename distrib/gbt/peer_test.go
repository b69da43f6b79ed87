package gbt

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// lcg draws the numbers that testdata/peer.py draws.
type lcg uint64

func (s *lcg) draw(n int) float64 {
	*s = (*s*1103515245 + 12345) % (1 << 31)
	return float64(int(*s>>8) % n)
}

func (s *lcg) data(rows, cols int, classes bool) *Data {
	x := make([]float32, rows*cols)
	d := &Data{Rows: rows, Cols: cols, Label: make([]float64, rows),
		Column: func(j int, to []float32) {
			for i := range to {
				to[i] = x[i*cols+j]
			}
		}}
	for i := range rows {
		own := x[i*cols:][:cols]
		for j := range own {
			if j%3 == 2 {
				own[j] = float32(s.draw(5))
			} else {
				own[j] = float32(s.draw(1<<16)/1024 - 32)
			}
		}
		y := float64(own[0]) + float64(own[1])*float64(own[2])/4 + s.draw(1<<10)/64
		if d.Label[i] = y; classes {
			d.Label[i] = 0
			if y > 0 {
				d.Label[i] = 1
			}
		}
	}
	return d
}

// TestPeer: after each of 30 trees the loss is that of scikit-learn's forests at equal settings to
// a part in 10^4: a hundredth of what is promised.
func TestPeer(t *testing.T) {
	b, err := os.ReadFile("testdata/peer.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Rows, Cols, Depth int
		L2, Rate          float64
		Classes           bool
		Losses            []float64
	}
	if err := json.Unmarshal(b, &cases); err != nil || len(cases) != 4 {
		t.Fatal(len(cases), err)
	}
	draws := lcg(1)
	for _, c := range cases {
		o := Options{Trees: len(c.Losses), Depth: c.Depth, Rate: c.Rate, L2: c.L2, MinLeaf: 20}
		if c.Classes {
			o.Loss = Logistic
		}
		_, said, _ := learnt(t, 2, draws.data(c.Rows, c.Cols, c.Classes), o, nil)
		for i, want := range c.Losses {
			if have := said[i+1].Loss / float64(c.Rows); math.Abs(have-want) > 1e-4*want {
				t.Errorf("%d samples, tree %d: loss %.9g, scikit-learn's %.9g", c.Rows, i+1, have,
					want)
			}
		}
	}
}
