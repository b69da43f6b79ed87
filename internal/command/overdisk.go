package command

import (
	"fmt"
	"time"

	"github.com/gomem/gomem/plan/space"
	"github.com/gomem/gomem/planner"
)

// overDisk is what a step copies between the host's memory and a disk, in bytes, and the least time
// that the disk takes for it by prices: reading and writing are at once.
type overDisk struct {
	DiskRead  int64   `json:"disk_read_bytes,omitempty"`
	DiskWrite int64   `json:"disk_write_bytes,omitempty"`
	DiskMS    float64 `json:"disk_ms,omitempty"`

	readRate, writeRate float64 // gigabytes a second
}

// diskOf is what a plan has the disk do.
func diskOf(r *planner.Result) overDisk {
	d := overDisk{DiskRead: r.Plan.Copied(space.Copier(space.Disk, space.Host)),
		DiskWrite: r.Plan.Copied(space.Copier(space.Host, space.Disk))}
	takes := func(from, to space.ID, bytes int64) time.Duration {
		return r.Model.Copy(from, to, bytes)
	}
	d.DiskMS = milliseconds(max(takes(space.Disk, space.Host, d.DiskRead),
		takes(space.Host, space.Disk, d.DiskWrite)))
	d.readRate = 1 / takes(space.Disk, space.Host, 1e9).Seconds()
	d.writeRate = 1 / takes(space.Host, space.Disk, 1e9).Seconds()
	return d
}

// String says it in a sentence; it is "" if a step has no need of the disk.
func (d overDisk) String() string {
	if d.DiskRead == 0 && d.DiskWrite == 0 {
		return ""
	}
	text := "a step reads " + size(d.DiskRead) + " from the disk"
	rates := fmt.Sprintf("%.3g GB/s", d.readRate)
	if d.DiskWrite > 0 {
		text += " and writes " + size(d.DiskWrite)
		rates += fmt.Sprintf(" and %.3g GB/s", d.writeRate)
	}
	return fmt.Sprintf("%s: %.4g ms or more at %s", text, d.DiskMS, rates)
}
