package images

import (
	"context"
	"fmt"
	"image"
	"math/rand/v2"
	"path/filepath"

	"github.com/gomem/gomem/data"
	"github.com/gomem/gomem/internal/regular"
)

// The binary format of CIFAR-10: records of a label and a plane of each colour.
const (
	cifarSide   = 32
	cifarPlane  = cifarSide * cifarSide
	cifarRecord = 1 + 3*cifarPlane
)

// cifarNames are CIFAR-10's classes, in the order of its labels.
func cifarNames() []string {
	return []string{"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship",
		"truck"}
}

// readCIFAR reads the six files of the binary version.
func (r *reader) readCIFAR() (*Set, error) {
	s := &Set{ClassNames: cifarNames()}
	s.Info.Path = r.path
	var train []byte
	var files []data.File
	for i := range 6 {
		name := fmt.Sprintf("data_batch_%d.bin", i+1)
		if i == 5 {
			name = "test_batch.bin"
		}
		records, err := r.readRecords(filepath.Join(r.path, name), len(s.ClassNames))
		if err != nil {
			return nil, err
		}
		files = append(files, data.FileOf(name, records))
		r.step(i + 1)
		if i == 5 {
			s.heldOut = cifar(records[:cifarRecord*r.limit(len(records)/cifarRecord)])
		} else {
			train = append(train, records...)
		}
	}
	s.train = cifar(train[:cifarRecord*r.limit(len(train)/cifarRecord)])
	s.Info.Summarize(files)
	return s, nil
}

// readRecords reads and checks a file of records.
func (r *reader) readRecords(path string, classes int) ([]byte, error) {
	if r.ctx.Err() != nil {
		return nil, context.Cause(r.ctx)
	}
	records, err := regular.ReadFile(path)
	switch {
	case err != nil:
		return nil, r.fail(path, err)
	case len(records) == 0 || len(records)%cifarRecord != 0:
		return nil, r.fail(path, fmt.Errorf("%d bytes are not records of %d: give the binary "+
			"version of CIFAR-10, unpacked and whole", len(records), cifarRecord))
	}
	for at := 0; at < len(records); at += cifarRecord {
		if label := int(records[at]); label >= classes {
			return nil, r.fail(path, fmt.Errorf("record %d has label %d: want 0 to %d, as in "+
				"CIFAR-10", at/cifarRecord+1, label, classes-1))
		}
	}
	return records, nil
}

// cifar is a part of CIFAR-10: whole records.
type cifar []byte

func (c cifar) len() int       { return len(c) / cifarRecord }
func (c cifar) kind(i int) int { return int(c[i*cifarRecord]) }

func (c cifar) paint(dst *image.RGBA, i int, rng *rand.Rand) {
	planes := c[i*cifarRecord+1:][:3*cifarPlane]
	src := image.NewRGBA(image.Rect(0, 0, cifarSide, cifarSide))
	for p := range cifarPlane {
		copy(src.Pix[4*p:], []byte{planes[p], planes[cifarPlane+p], planes[2*cifarPlane+p], 255})
	}
	distort(dst, src, rng, true)
}
