package command

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/gomem/gomem"
	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/graph/tensor"
	"github.com/gomem/gomem/train"
)

// TestClassified: counts, precision and recall of a confusion that is known, and the most
// frequent of its mistakes first; rows that pad a batch do not count.
func TestClassified(t *testing.T) {
	c := train.NewConfusion(4)
	labels := []int32{1, 1, 1, 1, 2, 2, 0, 0}
	said := []int32{1, 2, 2, 0, 2, 1, 3, 1}
	b := data.Batch{Inputs: []gomem.Tensor{{}, tensor.FromI32(labels, 8)}}
	err := train.ClassScorer(c).Score(b, []gomem.Tensor{tensor.FromI32(said, 8, 1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := checkpointed{Checkpoint: train.Checkpoint{Classes: []string{"cats", "dogs", "ducks"}}}
	r := x.results(c, 4)
	have, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"classes":[` +
		`{"class":"background","count":0,"said":1,"precision":0,"recall":null},` +
		`{"class":"cats","count":4,"said":2,"precision":0.5,"recall":0.25},` +
		`{"class":"dogs","count":2,"said":3,"precision":0.3333333333333333,"recall":0.5}],` +
		`"confusions":[{"class":"cats","said":"dogs","count":2,"of":4},` +
		`{"class":"cats","said":"background","count":1,"of":4},` +
		`{"class":"dogs","said":"cats","count":1,"of":2}]}`
	if string(have) != want {
		t.Errorf("have %s\nwant %s", have, want)
	}
	var out bytes.Buffer
	r.print(&out)
	for _, line := range []string{"background", "0.3333", "cats taken for dogs: 2 of 4"} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, &out)
		}
	}
}

// TestEvalClasses: the counts of an evaluation of pictures are those of the folder, and their
// recall is the accuracy.
func TestEvalClasses(t *testing.T) {
	inDir(t)
	faces := pictured(t, "faces", 60, "cats", "dogs", "ducks")
	few := pictured(t, "few", 5, "ducks", "cats")
	succeed(t, "train", "--model", "resnet", "--size", "s512", "--policy", "vanilla",
		"--data", faces, "--steps", "1", "--save", "run")
	line := evaluation(t, "--from", "run", "--data", few)
	counts, right := map[string]float64{}, 0.0
	for _, c := range line["classes"].([]any) {
		m := c.(map[string]any)
		if n := m["count"].(float64); n > 0 {
			counts[m["class"].(string)] = n
			right += n * m["recall"].(float64)
		}
	}
	if want := map[string]float64{"ducks": 3, "cats": 2}; !reflect.DeepEqual(counts, want) {
		t.Errorf("counts are %v, want %v", counts, want)
	}
	accuracy := line["metrics"].(map[string]any)["accuracy"].(float64)
	if d := right/5 - accuracy; d > 1e-6 || d < -1e-6 {
		t.Errorf("%v of 5 are right, accuracy is %v", right, accuracy)
	}
	text := succeed(t, "eval", "--from", "run", "--data", few)
	if !strings.Contains(text, "recall") {
		t.Errorf("%s", text)
	}
}
