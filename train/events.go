package train

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// eventFile is a file of events as TensorBoard reads it: records in TFRecord's framing, each a
// message Event of tensorflow/core/util/event.proto. Of a run that is resumed there are several,
// and what begins one says that later steps in those before it do not count.
type eventFile struct{ file *os.File }

// The numbers of the fields that are written, by message.
const (
	eventTime, eventStep, eventVersion, eventSummary, eventSession = 1, 2, 3, 5, 7

	summaryValue          = 1
	valueTag, valueSimple = 1, 2
	sessionStatus         = 1
	sessionStart          = 1 // a status
	eventFormat           = "brain.Event:2"
)

// newEvents begins a file in a directory, of steps from one on.
func newEvents(dir string, step int) (*eventFile, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	now := time.Now()
	for i := 0; ; i++ {
		name := fmt.Sprintf("events.out.tfevents.%010d.%s.%d.%d", now.Unix(), host, os.Getpid(), i)
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
		if os.IsExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		x := &eventFile{f}
		err = x.write(protowire.AppendString(protowire.AppendTag(stamp(0), eventVersion,
			protowire.BytesType), eventFormat))
		if err == nil && step > 1 {
			err = x.restart(step)
		}
		if err != nil {
			_ = f.Close() // the first error is the one to report
			return nil, err
		}
		return x, nil
	}
}

// restart says that what there is of a step, and of later ones, does not count.
func (x *eventFile) restart(step int) error {
	session := protowire.AppendVarint(protowire.AppendTag(nil, sessionStatus,
		protowire.VarintType), sessionStart)
	return x.write(embed(stamp(step), eventSession, session))
}

// add writes numbers after a step, by their tags.
func (x *eventFile) add(step int, scalars map[string]float64) error {
	var summary []byte
	for _, tag := range slices.Sorted(maps.Keys(scalars)) {
		value := protowire.AppendString(protowire.AppendTag(nil, valueTag, protowire.BytesType),
			tag)
		value = protowire.AppendFixed32(protowire.AppendTag(value, valueSimple,
			protowire.Fixed32Type), math.Float32bits(float32(scalars[tag])))
		summary = embed(summary, summaryValue, value)
	}
	return x.write(embed(stamp(step), eventSummary, summary))
}

// stamp begins an event.
func stamp(step int) []byte {
	seconds := float64(time.Now().UnixNano()) / 1e9
	b := protowire.AppendFixed64(protowire.AppendTag(nil, eventTime, protowire.Fixed64Type),
		math.Float64bits(seconds))
	return protowire.AppendVarint(protowire.AppendTag(b, eventStep, protowire.VarintType),
		uint64(step))
}

// embed appends a message that is a field of another.
func embed(b []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), message)
}

// write writes a record: its length, a checksum of that, the data and their checksum.
func (x *eventFile) write(data []byte) error {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, masked(b))
	b = append(b, data...)
	b = binary.LittleEndian.AppendUint32(b, masked(data))
	_, err := x.file.Write(b)
	return err
}

// masked is the checksum of TFRecord: CRC32C, turned, and moved by a constant, so that data
// which have checksums in them have others.
func masked(b []byte) uint32 {
	sum := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return (sum>>15 | sum<<17) + 0xa282ead8
}
