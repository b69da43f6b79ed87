package control

type member struct{}

func (m *member) close() {}
