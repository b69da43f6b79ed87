package workload

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gomem/gomem/distrib"
)

func clicked() *LR {
	train, test := Clicks(1, 3000, 1000, 1200, 12, 3)
	return &LR{Train: train, Test: test, Epochs: 4, Clocks: 100, Rate: .03, Decay: .9, Cols: 4}
}

// TestLRLearns: several workers, with dense rows and with sparse ones, stale or not, do about as
// well as the serial run, and worker 0 is told so.
func TestLRLearns(t *testing.T) {
	for name, plan := range map[string]distrib.Plan{
		"bsp":   {},
		"ssp":   {Consistency: distrib.SSP{S: 2}},
		"async": {Consistency: distrib.Async{}},
		"sums":  {Consistency: distrib.SSP{S: 1}, Down: distrib.Deltas},
		"svb":   {Topology: &distrib.All{}, Consistency: distrib.SSP{S: 1}},
	} {
		for _, dense := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				m := clicked()
				m.Losses, m.Slack, m.Dense, m.Clocks = true, 2, dense, 20
				sum, told := together(t, 3, plan, func(s distrib.Synchronizer, w Worker) error {
					return m.Run(context.Background(), s, w)
				})
				curve, err := m.Serial()
				if err != nil || len(told) != m.Epochs+1 {
					t.Fatalf("%s: %v, told of %d epochs", name, err, len(told))
				}
				have, want := told[m.Epochs], curve[m.Epochs]
				own, _ := sum.Epoch(m.Epochs, 3)
				if math.Abs(have.Mean()-want.Mean()) > .03 || have.TestCount != 1000 ||
					math.Abs(have.TestLoss-want.TestLoss)/1000 > .03 ||
					math.Abs(have.AUC-want.AUC) > .03 || have.AUC < .75 ||
					math.Abs(own.Mean()-have.Mean()) > 1e-4 {
					t.Errorf("%s, dense %v: %+v, serial %+v", name, dense, have, want)
				}
			})
		}
	}
}

// TestLRPullsWhatItNeeds: where a sample has few of many features, a clock pulls and pushes their
// rows alone, whose values are those of dense rows to the bit.
func TestLRPullsWhatItNeeds(t *testing.T) {
	var ends [2][]float32
	for i, dense := range []bool{false, true} {
		m := clicked()
		m.Dense = dense
		s := &asked{}
		if err := m.Run(context.Background(), s, Worker{Of: 1}); err != nil {
			t.Fatal(err)
		}
		rows := map[int32]bool{} // of the second clock
		for _, at := range m.Train.index[m.Train.start[30]:m.Train.start[60]] {
			rows[at/4] = true
		}
		want := len(rows)
		if dense {
			want = m.rows()
		}
		if got := s.pulled[2]; got != want || want < 50 || !dense && want > m.rows()/2 {
			t.Errorf("dense %v: %d rows of %d are pulled, want %d", dense, got, m.rows(), want)
		}
		ends[i] = values(s.ps[0])
	}
	for i, v := range ends[0] {
		if math.Float32bits(v) != math.Float32bits(ends[1][i]) {
			t.Fatalf("weight %d is %v, with dense rows %v", i, v, ends[1][i])
		}
	}
}

// TestLRRefuses: tasks that make no sense.
func TestLRRefuses(t *testing.T) {
	for want, change := range map[string]func(*LR){
		"no training samples": func(l *LR) { l.Train = &Samples{} },
		"3 classes":           func(l *LR) { l.Train.Classes = 3 },
		"test samples of 9":   func(l *LR) { l.Test.Features = 9 },
		"no sample has":       func(l *LR) { l.Train.Features = 0 },
		"rows of -1":          func(l *LR) { l.Cols = -1 },
		"step size":           func(l *LR) { l.Rate = math.NaN() },
	} {
		m := clicked()
		change(m)
		if _, err := m.Serial(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestAUC is the share of pairs that are in order, by looking at each.
func TestAUC(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		n := rng.IntN(30)
		score, label := make([]float64, n), make([]int32, n)
		for i := range score {
			score[i], label[i] = float64(rng.IntN(8)), int32(rng.IntN(2))
		}
		won, pairs := 0.0, 0.0
		for i := range score {
			for j := range score {
				if label[i] == 1 && label[j] == 0 {
					pairs++
					if score[i] > score[j] {
						won++
					} else if score[i] == score[j] {
						won += 0.5
					}
				}
			}
		}
		want := 0.5
		if pairs > 0 {
			want = won / pairs
		}
		if got := auc(score, label); math.Abs(got-want) > 1e-12 {
			t.Fatalf("%v of %v and %v, want %v", got, score, label, want)
		}
	}
}

// TestClicks: features of a field are as frequent as Zipf's law says, and a quarter are clicks.
func TestClicks(t *testing.T) {
	s, _ := Clicks(3, 20000, 0, 1001, 11, 1)
	var first [1001]int
	clicks := 0
	for i := range s.Len() {
		index, _ := s.at(i)
		if len(index) != 11 || index[0] != 0 {
			t.Fatalf("sample %d has %v", i, index)
		}
		for k, at := range index {
			if k > 0 && (at < int32(1+100*(k-1)) || at >= int32(1+100*k)) {
				t.Fatalf("sample %d has %v", i, index)
			}
			first[at]++
		}
		clicks += int(s.label[i])
	}
	for rank := range 8 {
		have := 0.0
		for f := range 10 {
			have += float64(first[1+100*f+rank]) / float64(10*s.Len())
		}
		want := math.Log(1+1/float64(rank+1)) / math.Log(101)
		if math.Abs(have-want) > 0.01 {
			t.Errorf("rank %d has %.4f of all, want %.4f", rank, have, want)
		}
	}
	if share := float64(clicks) / float64(s.Len()); share < .2 || share > .3 {
		t.Errorf("%v are clicks", share)
	}
}

// TestBinaryLabels: two classes by the names that files have for them.
func TestBinaryLabels(t *testing.T) {
	for text, want := range map[string]string{
		"-1 1:1\n+1 2:1":        "[0 1]",
		"0 1:1\n1 2:1":          "[0 1]",
		"1 1:1\n2 2:1":          "[0 1]",
		"1 1:1\n1 2:1":          "[1 1]",
		"-1 1:1\n0 2:1":         "labels -1 and 0",
		"-1 1:1\n2 2:1":         "3 classes",
		"0 1:1\n1 1:1\n2 1:1":   "3 classes",
		"-2 1:1":                "label \"-2\" is no class",
		"1 1:1\n1 67108865:1\n": "more than 67108864",
	} {
		s, err := ReadBinary(strings.NewReader(text), nil)
		have := fmt.Sprint(err)
		if err == nil {
			have = fmt.Sprint(s.label)
		}
		if !strings.Contains(have, want) {
			t.Errorf("%q: %s, want %s", text, have, want)
		}
	}
	if _, err := ReadLIBSVM(strings.NewReader("-1 1:1"), nil); err == nil {
		t.Error("a class is called -1")
	}
}

// TestLRIsPyTorchs: the serial run is what PyTorch comes to with the same samples in the same
// order, by its own gradients.
func TestLRIsPyTorchs(t *testing.T) {
	m := clicked()
	m.Train, m.Test = Clicks(2, 150, 300, 300, 8, 2)
	m.Epochs = 2
	curve, err := m.Serial()
	if err != nil {
		t.Fatal(err)
	}
	in, _ := json.Marshal(map[string]any{"n": m.Train.Features, "rate": m.Rate, "decay": m.Decay,
		"epochs": m.Epochs, "index": m.Train.index, "start": m.Train.start, "label": m.Train.label,
		"test_index": m.Test.index, "test_start": m.Test.start, "test_label": m.Test.label})
	cmd := exec.Command("/usr/bin/python3", "-c", lrScript)
	cmd.Stdin = bytes.NewReader(in)
	b, err := cmd.Output()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 77 {
		t.Skip("no PyTorch")
	}
	if err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	var want struct{ Loss, TestLoss, AUC float64 }
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	have := curve[m.Epochs]
	if math.Abs(have.Mean()-want.Loss) > 1e-9 || math.Abs(have.AUC-want.AUC) > 1e-9 ||
		math.Abs(have.TestLoss/300-want.TestLoss) > 1e-9 {
		t.Errorf("%+v, PyTorch %+v", have, want)
	}
}

const lrScript = `import json, sys
try:
    import torch
except ImportError:
    sys.exit(77)
x = json.load(sys.stdin)
w = torch.nn.EmbeddingBag(x["n"], 1, mode="sum", sparse=True, dtype=torch.float64)
torch.nn.init.zeros_(w.weight)
loss = torch.nn.BCEWithLogitsLoss()
i, t = torch.tensor(x["index"]), torch.tensor(x["label"], dtype=torch.float64)
s, rate = x["start"], x["rate"]
for epoch in range(x["epochs"]):
    step = torch.optim.SGD(w.parameters(), lr=rate)
    for k in range(len(t)):
        step.zero_grad()
        loss(w(i[s[k]:s[k+1]].unsqueeze(0)).view(1), t[k:k+1]).backward()
        step.step()
    rate *= x["decay"]
with torch.no_grad():
    z = w(i, torch.tensor(s[:-1])).view(-1)
    zt = w(torch.tensor(x["test_index"]), torch.tensor(x["test_start"][:-1])).view(-1)
    tt = torch.tensor(x["test_label"], dtype=torch.float64)
    d = zt[tt == 1].unsqueeze(1) - zt[tt == 0].unsqueeze(0)
    auc = ((d > 0).double() + 0.5 * (d == 0).double()).mean()
    json.dump({"Loss": loss(z, t).item(), "TestLoss": loss(zt, tt).item(), "AUC": auc.item()},
        sys.stdout)
`

// asked counts the rows that are pulled, each time.
type asked struct {
	alone
	pulled []int
}

func (a *asked) PullRows(ctx context.Context, refs []distrib.Ref) error {
	n := 0
	for _, ref := range refs {
		n += int(ref.N)
	}
	a.pulled = append(a.pulled, n)
	_, err := a.Pull(ctx, distrib.Ref{})
	return err
}
