package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// DiskRates are how fast a disk is, in bytes a second, one copy after the other.
type DiskRates struct {
	Read  float64 `json:"read"`
	Write float64 `json:"write"`
}

// sound reports whether they could have been measured.
func (r DiskRates) sound() bool { return r.Read > 0 && r.Write > 0 && r.Read+r.Write < 1e15 }

// What a disk is measured by: a file of at most so many bytes, in pieces of the size of a weight,
// within so much time each for writing and for reading.
const (
	diskBytes = 64 << 20
	diskPiece = 4 << 20
	diskTime  = time.Second / 2
)

// Disk measures the disk that a directory is on, unless the cache has it, and has [Machine.Local]
// price copies by it. A file is written there, and read when the operating system has nothing of it
// in memory, where it can be told so; it is removed again.
func (m *Machine) Disk(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("calibrate: %w", err)
	}
	rates, known := m.known.Disks[dir]
	if !known || m.options.Renew {
		if rates, err = disk(ctx, dir); err != nil {
			return fmt.Errorf("calibrate: the disk of %s: %w", dir, err)
		}
		disks := map[string]DiskRates{dir: rates}
		for other, r := range m.known.Disks {
			if other != dir && len(disks) < mostDisks {
				disks[other] = r
			}
		}
		m.known.Disks = disks
		m.stale = m.cache.store(m.known)
	}
	m.disk = &rates
	return nil
}

// mostDisks is how many directories a cache keeps.
const mostDisks = 16

// disk measures the disk of a directory.
func disk(ctx context.Context, dir string) (r DiskRates, err error) {
	f, err := os.CreateTemp(dir, "gomem-*.disk")
	if err != nil {
		return r, err
	}
	removed := os.Remove(f.Name()) == nil // where an open file may be, nobody finds it later
	defer func() {
		if err = errors.Join(err, f.Close()); !removed {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	piece := make([]byte, diskPiece)
	draw := rand.NewChaCha8([32]byte{}) // what can be made smaller tells nothing
	start, bytes := time.Now(), int64(0)
	for bytes < diskBytes && time.Since(start) < diskTime && ctx.Err() == nil {
		if _, err := draw.Read(piece); err != nil {
			return r, err
		}
		if _, err := f.WriteAt(piece, bytes); err != nil && bytes == 0 {
			return r, err
		} else if err != nil {
			break // it is nearly full: what there was room for is enough
		}
		bytes += diskPiece
	}
	if err := errors.Join(context.Cause(ctx), f.Sync()); err != nil {
		return r, err
	}
	r.Write = float64(bytes) / time.Since(start).Seconds()
	if err := forget(f); err != nil {
		return r, err
	}
	start = time.Now()
	at := int64(0)
	for at < bytes && time.Since(start) < diskTime && ctx.Err() == nil {
		if _, err := f.ReadAt(piece, at); err != nil {
			return r, err
		}
		at += diskPiece
	}
	r.Read = float64(at) / time.Since(start).Seconds()
	return r, context.Cause(ctx)
}
