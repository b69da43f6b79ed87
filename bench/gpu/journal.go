//go:build linux && amd64 && !nocuda

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// entry is a line of a journal. Of every row there is one when it is begun, and another when it
// has ended: with its cells, of which there may be several rows, or cut off in an orderly way.
type entry struct {
	Row    string     `json:"row"`
	Ended  bool       `json:"ended,omitempty"`
	Cut    bool       `json:"cut,omitempty"`
	Cells  [][]string `json:"cells,omitempty"`
	Failed string     `json:"failed,omitempty"` // gomem did, with this
}

// journal is what earlier runs of a phase have measured, so that a later one goes on from there.
// What is written is there even if the next row brings the process down.
type journal struct {
	done  map[string]entry
	begun map[string]int // how often a row was begun, and nothing more was heard of it
	file  *os.File       // nil: nothing is kept
}

// open reads a journal, if a path is given, and writes the end of it. A last line that is cut off
// is none.
func open(path string) (j *journal, err error) {
	j = &journal{done: map[string]entry{}, begun: map[string]int{}}
	if path == "" {
		return j, nil
	}
	if j.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, err
	}
	whole, lines := int64(0), bufio.NewReader(j.file)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			break
		}
		var e entry
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		if err != nil {
			err = fmt.Errorf("%s, at byte %d: %w", path, whole, err)
			return nil, errors.Join(err, j.file.Close())
		}
		j.learn(e)
		whole += int64(len(line))
	}
	_, err = j.file.Seek(whole, io.SeekStart)
	return j, errors.Join(err, j.file.Truncate(whole))
}

func (j *journal) learn(e entry) {
	switch {
	case e.Ended:
		j.done[e.Row] = e
	case e.Cut:
		j.begun[e.Row]--
	default:
		j.begun[e.Row]++
	}
}

// write puts an entry at the end.
func (j *journal) write(e entry) error {
	j.learn(e)
	if j.file == nil {
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(line, '\n'))
	return err
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

// errTime ends a search, and says of a row that there was no time for it.
var errTime = errors.New("for want of time")

// patience is how long a row may take, and attempts how often it is begun and may bring down the
// process that does.
const patience, attempts = 150 * time.Second, 2

// outcome is what a row came to: cells, and why gomem failed, if it did.
type outcome struct {
	cells  [][]string
	failed error
}

// once is a row's outcome: that of an earlier run, or else what a function comes to, which is
// kept. It is errTime if there is no time for it, or not enough.
func (b *bench) once(ctx context.Context, row string, f func(context.Context) (outcome, error)) (
	[][]string, error) {
	e, ok := b.rows.done[row]
	if !ok {
		if !b.left() {
			return nil, errTime
		}
		if err := b.rows.write(entry{Row: row}); err != nil {
			return nil, err
		}
		var err error
		if e, err = b.anew(ctx, row, f); err == nil {
			err = b.rows.write(e)
		}
		if err != nil {
			return nil, err
		}
	}
	if e.Failed != "" {
		b.failed = append(b.failed, errors.New(e.Failed))
	}
	return e.Cells, nil
}

// anew is a row's entry.
func (b *bench) anew(ctx context.Context, row string,
	f func(context.Context) (outcome, error)) (entry, error) {
	e := entry{Row: row, Ended: true}
	if b.rows.begun[row] > attempts {
		e.Cells = [][]string{{"failed: it brought the process down"}}
		e.Failed = row + " brought the process down"
		return e, nil
	}
	whole, stop := context.WithDeadline(ctx, b.ends)
	defer stop()
	one, enough := context.WithTimeout(whole, patience)
	defer enough()
	o, err := f(one)
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case whole.Err() != nil:
		err = errTime
	case one.Err() != nil:
		o, err = outcome{cells: [][]string{{fmt.Sprintf("not in %v", patience)}}}, nil
	}
	if err != nil {
		return e, errors.Join(err, b.rows.write(entry{Row: row, Cut: true}))
	}
	e.Cells = o.cells
	if o.failed != nil {
		e.Failed = fmt.Sprintf("%s: %v", row, o.failed)
	}
	return e, nil
}
