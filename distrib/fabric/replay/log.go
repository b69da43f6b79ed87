package replay

import "github.com/gomem/gomem/distrib/fabric"

// Log is what a job does to its model.
type Log struct {
	Name      string
	Steps     []Step
	Dropped   int     // updates, at their workers
	Ingress   float64 // bytes that the server has received
	Replica   float64 // bytes that the replica has received
	Transfers []Sent
}

// Step is one of the model's versions: what was added to the one before it.
type Step struct {
	At      float64 // seconds
	Updates []Base
}

// Base is an update: whose, how many it has made before, and which version it was computed from.
type Base struct {
	Worker, Count int
	Version       int
}

// Sent is a transfer, in seconds from the job's beginning.
type Sent struct {
	fabric.Transfer
	Bps float64 // of the slower one of its links, as it starts
}

// Seconds is when the last update was applied.
func (l *Log) Seconds() float64 { return l.Steps[len(l.Steps)-1].At }

// Updates is how many were applied.
func (l *Log) Updates() (n int) {
	for _, s := range l.Steps {
		n += len(s.Updates)
	}
	return n
}

// sent notes transfers that begin at a time of the job.
func (l *Log) sent(w *world, all []fabric.Transfer) {
	for _, x := range all {
		if x.From == x.To {
			continue
		}
		switch x.To {
		case w.server():
			l.Ingress += x.Bytes
		case w.replica():
			l.Replica += x.Bytes
		}
		x.Start, x.End = x.Start+w.now, x.End+w.now
		l.Transfers = append(l.Transfers, Sent{x, min(w.up[x.From].At(x.Start),
			w.down[x.To].At(x.Start))})
	}
}
