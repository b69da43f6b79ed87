package command

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/gomem/gomem/plan"
)

// TestLifeOfOneValue: what ARCHITECTURE.md tells of a value is what its plan does.
func TestLifeOfOneValue(t *testing.T) {
	document, err := os.ReadFile("../../ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	inDir(t)
	var x explanation
	decode(t, succeed(t, "plan", "--partition", "20", "--json", "--dump",
		"plan.txt"), &x)
	f, err := os.Open("plan.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := plan.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	const value = "enc/0/moe/expert3/relu"
	var slots []plan.SlotID // on the device, in the order of time
	for i, s := range p.Slots {
		if s.Value == value && p.Spaces[s.Space].Name == "device" {
			slots = append(slots, plan.SlotID(i))
		}
	}
	if len(slots) != 2 {
		t.Fatalf("%s has %d device slots", value, len(slots))
	}
	made, swappedOut, swappedIn, readers := -1, -1, -1, []int{}
	for i, s := range p.Steps {
		switch do := s.Do.(type) {
		case plan.Launch:
			if slices.Contains(do.Out, plan.Ref{Slot: slots[0]}) {
				made = i
			}
			if slices.Contains(do.In, plan.Ref{Slot: slots[1]}) {
				readers = append(readers, i)
			}
		case plan.Copy:
			switch {
			case do.Src.Slot == slots[0]:
				swappedOut = i
			case do.Dst.Slot == slots[1]:
				swappedIn = i
			}
		}
	}
	if made < 0 || swappedOut < 0 || swappedIn < 0 || len(readers) != 2 {
		t.Fatalf("made in %d, out in %d, in in %d, read in %v", made, swappedOut, swappedIn,
			readers)
	}
	step := func(i int) string { return grouped(int64(i)) }
	text := strings.Join(strings.Fields(string(document)), " ")
	for _, want := range []string{
		fmt.Sprintf("`%s`, under `gomem plan --partition 20 --steps`", value),
		fmt.Sprintf("partition: number %d of %d; its readers are in partitions %d and %d",
			p.Steps[made].Part, x.Partitions, p.Steps[made].Part, p.Steps[readers[0]].Part),
		fmt.Sprintf("a stay on the device from event %s;", step(made)),
		fmt.Sprintf("right after it is made, event %s;", step(swappedOut)),
		fmt.Sprintf("on stream `in`, event %s, is issued", step(swappedIn)),
		fmt.Sprintf("the backward readers, events %s and %s", step(readers[0]), step(readers[1])),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("ARCHITECTURE.md does not say %q", want)
		}
	}
}
