package images

import (
	"context"
	"slices"
	"strings"
	"testing"
)

// TestWhole: every image of a set is in its held-out batches once, with the label of
// the class of its name.
func TestWhole(t *testing.T) {
	dir := folder(t)
	set, err := Open(context.Background(), "dir:"+dir, Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	named, err := set.Whole().Labelled([]string{"none", "light", "dark"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLoader(named, LoaderOptions{Images: 7, Size: 8, Classes: 4})
	if err != nil {
		t.Fatal(err)
	}
	count := map[int32]int{}
	units := 0
	for i := range l.HeldOutBatches() {
		b := l.HeldOut(i)
		units += b.Units
		for _, label := range b.Inputs[1].I32()[:b.Units] {
			count[label]++
		}
	}
	if units != 120 || count[3] != 60 || count[2] != 60 || l.StepsPerEpoch() != 0 {
		t.Errorf("%d images, by label %v", units, count)
	}
	if named.Info.HeldOut != 120 || set.Info.HeldOut == 120 {
		t.Errorf("%d of the whole set are held out, %d of the set", named.Info.HeldOut,
			set.Info.HeldOut)
	}
	first, second := set.heldOut, named.heldOut
	if !slices.Equal([]int{first.kind(0), set.train.kind(3)},
		[]int{second.kind(0), second.kind(first.len() + 3)}) {
		t.Error("other images in another order")
	}
	if _, err := set.Labelled([]string{"dark"}); err == nil ||
		!strings.Contains(err.Error(), "images of light") {
		t.Errorf("a kind that the model does not know: %v", err)
	}
}
