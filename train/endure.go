package train

import "cmp"

// lostError is of what another worker did not give, which is not the disk's fault.
type lostError struct{ error }

// Unwrap is the reason.
func (e *lostError) Unwrap() error { return e.error }

// joint is a disk for what all workers write together: whoever gives what it has must not wait
// for one whose disk is full. So files take what they cannot keep, and say so at their end.
type joint struct {
	disk
	begun bool // the first file's content is asked for
}

// Create makes a file that does not fail before its end.
func (d *joint) Create(name string) (file, error) {
	d.begun = true
	f, err := d.disk.Create(name)
	return &tolerant{f, err}, nil
}

// tolerant is a file that keeps its first error to its end. Without a file it keeps nothing.
type tolerant struct {
	file
	err error
}

func (f *tolerant) Write(b []byte) (int, error) {
	if f.file != nil && f.err == nil {
		_, f.err = f.file.Write(b)
	}
	return len(b), nil
}

func (f *tolerant) WriteAt(b []byte, at int64) (int, error) {
	if f.file != nil && f.err == nil {
		_, f.err = f.file.WriteAt(b, at)
	}
	return len(b), nil
}

// Sync is the first error, or the file's.
func (f *tolerant) Sync() error {
	if f.file != nil && f.err == nil {
		f.err = f.file.Sync()
	}
	return f.err
}

// Close is the first error, or the file's.
func (f *tolerant) Close() error {
	if f.file == nil {
		return f.err
	}
	return cmp.Or(f.err, f.file.Close())
}
