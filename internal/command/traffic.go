package command

import (
	"fmt"
	"time"

	"github.com/gomem/gomem/train"
)

// traffic is what the workers of a job exchange as it goes.
type traffic struct {
	last, now train.Exchanged
	step      time.Duration
}

// add enters what has been exchanged after a step.
func (t *traffic) add(x train.Exchanged, step time.Duration) {
	t.last, t.now, t.step = t.now, x, step
}

// facts are where the workers are, and what they exchange, in words.
func (t *traffic) facts() []string {
	rate := func(now, last int64) string {
		return size(int64(float64(now-last)/max(t.step.Seconds(), 1e-9))) + "/s"
	}
	facts := []string{fmt.Sprintf("clocks %d-%d", t.now.Slowest, t.now.Fastest),
		"up " + rate(t.now.Sent, t.last.Sent), "down " + rate(t.now.Received, t.last.Received)}
	if t.now.Slowest == t.now.Fastest {
		facts = facts[1:]
	}
	if t.now.Staleness > 0 {
		facts = append(facts, fmt.Sprintf("stale %d", t.now.Staleness))
	}
	if t.now.Saved > 0 {
		facts = append(facts, "saved "+size(t.now.Saved))
	}
	if t.now.Full > t.last.Full {
		facts = append(facts, "outbox full")
	}
	return facts
}

// exchanges are the metrics of what a worker exchanges.
func exchanges(x train.Exchanged) []Sample {
	return []Sample{
		{"gomem_sent_bytes_total", "Bytes sent to other workers.", true, float64(x.Sent)},
		{"gomem_received_bytes_total", "Bytes received from other workers.", true,
			float64(x.Received)},
		{"gomem_filtered_bytes_total", "Bytes that were not sent.", true, float64(x.Saved)},
		{"gomem_outbox_full_total", "How often an outbox was at its bound.", true,
			float64(x.Full)},
		{"gomem_late_updates_total", "Updates that were discarded, since they came late.", true,
			float64(x.Late)},
		{"gomem_summed_updates_total", "Updates that were added to others' on their way.", true,
			float64(x.Summed)},
		{"gomem_replica_lacked_updates", "Updates that a replica lacked, at most so far.", false,
			float64(x.Lacked)},
		{"gomem_resent_updates_total", "Updates sent again to who took rows over.", true,
			float64(x.Resent)},
		{"gomem_staleness_steps", "Steps missing of another worker, the most seen.", false,
			float64(x.Staleness)},
		{"gomem_ahead_steps", "Steps ahead of the slowest worker.", false, float64(-x.Slowest)},
		{"gomem_behind_steps", "Steps behind the fastest worker.", false, float64(x.Fastest)},
		{"gomem_network_memory_bytes", "Host memory for exchanging, at most so far.", false,
			float64(x.Memory)},
	}
}

// exchanged is what workers have exchanged, in words; nothing of a run alone.
func exchanged(x *train.Exchanged) string {
	if x == nil {
		return ""
	}
	text := fmt.Sprintf("sent %s, received %s", size(x.Sent), size(x.Received))
	if x.Saved > 0 {
		text += fmt.Sprintf("; %s not sent (%.0f%%)", size(x.Saved),
			100*float64(x.Saved)/float64(x.Saved+x.Sent))
	}
	if x.Staleness > 0 {
		text += fmt.Sprintf("; %d steps apart at most", x.Staleness)
	}
	if x.Memory > 0 {
		text += fmt.Sprintf("; memory %s", size(x.Memory))
	}
	if x.Bound > 0 {
		text += fmt.Sprintf(" of at most %s", size(x.Bound))
	}
	if x.Summed > 0 {
		text += fmt.Sprintf("; %d updates added up on their way", x.Summed)
	}
	if x.Lacked > 0 {
		text += fmt.Sprintf("; replicas lacked %d updates at most", x.Lacked)
	}
	if x.Resent > 0 {
		text += fmt.Sprintf("; %d updates sent again to replicas", x.Resent)
	}
	if x.Late > 0 {
		text += fmt.Sprintf("; %d updates too late", x.Late)
	}
	if x.Full > 0 {
		text += fmt.Sprintf("; outboxes full %d times", x.Full)
	}
	return text
}
