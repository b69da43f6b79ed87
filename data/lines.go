package data

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// maxLineBytes bounds a line, so that a file that is not text fails early.
const maxLineBytes = 1 << 20

// readTSV reads source TAB target from every line of a file.
func (r *reader) readTSV(ctx context.Context, path string) error {
	return r.readLines(ctx, path, func(line string) error {
		source, target, ok := strings.Cut(line, "\t")
		source, target = strings.TrimSpace(source), strings.TrimSpace(target)
		switch {
		case !ok:
			return errors.New("no tab: write source TAB target")
		case strings.Contains(target, "\t"):
			return errors.New("more than one tab: write source TAB target")
		case source == "":
			return errors.New("empty source: write source TAB target, or remove the line")
		case target == "":
			return errors.New("empty target: write source TAB target, or remove the line")
		}
		r.add(Pair{Source: source, Target: target})
		return nil
	})
}

// readText pairs every non-blank line of a file with the next.
func (r *reader) readText(ctx context.Context, path string) error {
	previous := ""
	return r.readLines(ctx, path, func(line string) error {
		line = strings.TrimSpace(line)
		if line == "" {
			return nil
		}
		if previous != "" {
			r.add(Pair{Source: previous, Target: line})
		}
		previous = line
		return nil
	})
}

// readLines calls use with every line of a UTF-8 file, without its end or a
// byte order mark, until the corpus is full.
func (r *reader) readLines(ctx context.Context, path string, use func(line string) error) error {
	return r.readLongLines(ctx, path, maxLineBytes, use)
}

// readLongLines is readLines of lines of so many bytes at the most.
func (r *reader) readLongLines(ctx context.Context, path string, most int,
	use func(line string) error) error {
	r.corpus.Info.Path = path
	f, _, err := OpenFile(path)
	if err != nil {
		return r.fail(path, 0, err)
	}
	defer f.Close()
	in := Hash(filepath.Base(path), f)
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, most)
	n := 0
	for !r.full() && lines.Scan() {
		n++
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := checkedLine(lines.Text(), n, use); err != nil {
			return r.fail(path, n, err)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return r.fail(path, n+1, fmt.Errorf("line of more than %d bytes: give a text file, or "+
			"split the line", most))
	} else if err != nil {
		return r.fail(path, n+1, Remedied(err))
	}
	file, err := in.File()
	if err != nil {
		return r.fail(path, 0, Remedied(err))
	}
	r.addFile(file)
	return nil
}

// checkedLine hands line number n to use if it is text.
func checkedLine(line string, n int, use func(string) error) error {
	if n == 1 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	if err := CheckUTF8(line); err != nil {
		return err
	}
	return use(line)
}
