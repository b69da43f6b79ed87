package lower

import "github.com/gomem/gomem/plan/space"

// Spare is what to leave free of the device while operations run, by node of so many, in bytes: as
// much as what was left free before, and as what found no room below a budget has meanwhile.
func (k *Sketch) Spare(nodes int, budget int64, before []int64) []int64 {
	s, lack := k.schedule, k.lack(budget)
	spare := make([]int64, nodes)
	copy(spare, before)
	ran := make([]bool, len(spare))
	var most int64 // that is lacking since the operation before began
	for i := range s.Events {
		e := &s.Events[i]
		most = max(most, lack[i])
		if e.Copies() || s.Streams[e.Stream].Engine != space.Compute || ran[e.Node] {
			continue // what is executed again belongs to the operation that it comes before
		}
		ran[e.Node] = true
		spare[e.Node] += most
		most = lack[i]
	}
	return spare
}

// lack is the bytes of the slots of the device that are above a budget, by event.
func (k *Sketch) lack(budget int64) []int64 {
	change := make([]int64, len(k.schedule.Events)+1)
	for i := range k.slots {
		if s := &k.slots[i]; s.Space == space.Device && !s.Fixed && s.Off+s.Bytes > budget {
			change[s.From] += k.align.Up(s.Bytes)
			change[s.To+1] -= k.align.Up(s.Bytes)
		}
	}
	lack := change[:len(change)-1]
	var now int64
	for i := range lack {
		now += lack[i]
		lack[i] = now
	}
	return lack
}
