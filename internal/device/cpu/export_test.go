package cpu

// How much has one checksum, and how much is moved at once.
const (
	PageBytes    = pageBytes
	SectionBytes = sectionBytes
)

// File is what a disk memory needs of a file.
type File = file

// OpenWith opens a device whose files another function makes of those that the
// device would make.
func OpenWith(o Options, wrap func(File) File) (*Device, error) {
	d, err := Open(o)
	if err != nil {
		return nil, err
	}
	d.create = func(dir string, bytes int64) (file, error) {
		f, err := createFile(dir, bytes)
		if err != nil {
			return nil, err
		}
		return wrap(f), nil
	}
	return d, nil
}
