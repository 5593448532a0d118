package secrets

import (
	"bytes"
	"slices"
	"time"
)

// request holds the parameters of all operations.
type request struct {
	SecretID            string `json:"SecretId"`
	Name                string
	VersionID           string `json:"VersionId"`
	VersionStage        string
	ClientRequestToken  string
	SecretString        *string
	SecretBinary        []byte
	VersionStages       []string
	MoveToVersionID     string `json:"MoveToVersionId"`
	RemoveFromVersionID string `json:"RemoveFromVersionId"`
}

// value is an answer about one version.
type value struct {
	ARN, Name     string
	VersionID     string   `json:"VersionId,omitempty"`
	SecretString  *string  `json:",omitempty"`
	SecretBinary  []byte   `json:",omitempty"`
	VersionStages []string `json:",omitempty"`
	CreatedDate   float64  `json:",omitempty"`
}

// description is an answer about a secret. Dates are seconds since 1970.
type description struct {
	ARN, Name          string
	CreatedDate        float64
	LastChangedDate    float64
	VersionIdsToStages map[string][]string `json:",omitempty"`
}

func (s *Store) getSecretValue(in request) (any, error) {
	secret := s.find(in.SecretID)
	if secret == nil {
		return nil, errNoSecret
	}
	var v *version
	switch {
	case in.VersionID != "":
		v = secret.withID(in.VersionID)
		if v != nil && in.VersionStage != "" && !slices.Contains(v.Stages, in.VersionStage) {
			v = nil
		}
	case in.VersionStage != "":
		v = secret.withStage(in.VersionStage)
	default:
		v = secret.withStage(current)
	}
	if v == nil {
		return nil, errNoValue
	}
	return value{
		ARN: secret.ARN, Name: secret.Name, VersionID: v.ID, SecretString: v.Text, SecretBinary: v.Binary,
		VersionStages: v.Stages, CreatedDate: seconds(v.Created),
	}, nil
}

func (s *Store) describeSecret(in request) (any, error) {
	secret := s.find(in.SecretID)
	if secret == nil {
		return nil, errNoSecret
	}
	return secret.describe(), nil
}

func (s *stored) describe() description {
	d := description{
		ARN: s.ARN, Name: s.Name, CreatedDate: seconds(s.Created), LastChangedDate: seconds(s.Changed),
		VersionIdsToStages: map[string][]string{},
	}
	for _, v := range s.Versions {
		if len(v.Stages) > 0 {
			d.VersionIdsToStages[v.ID] = v.Stages
		}
	}
	return d
}

func (s *Store) listSecrets() (any, error) {
	list := struct{ SecretList []description }{SecretList: []description{}}
	for _, secret := range s.secrets {
		list.SecretList = append(list.SecretList, secret.describe())
	}
	return list, nil
}

func (s *Store) createSecret(in request) (any, error) {
	if in.Name == "" || (in.SecretString != nil && in.SecretBinary != nil) {
		return nil, errParameter
	}
	if s.find(in.Name) != nil {
		return nil, errExists
	}
	secret := s.create(in.Name)
	if in.SecretString == nil && in.SecretBinary == nil {
		return value{ARN: secret.ARN, Name: secret.Name}, s.save()
	}
	v := s.versionOf(in)
	s.add(secret, v, []string{current})
	return value{ARN: secret.ARN, Name: secret.Name, VersionID: v.ID}, s.save()
}

// putSecretValue adds a value. The same request token with the same value changes nothing; with another it is refused.
func (s *Store) putSecretValue(in request) (any, error) {
	secret := s.find(in.SecretID)
	if secret == nil {
		return nil, errNoSecret
	}
	if (in.SecretString == nil) == (in.SecretBinary == nil) {
		return nil, errParameter
	}
	v := s.versionOf(in)
	if held := secret.withID(v.ID); held != nil {
		if !held.same(v) {
			return nil, errVersion
		}
		return value{ARN: secret.ARN, Name: secret.Name, VersionID: held.ID, VersionStages: held.Stages}, nil
	}
	stages := in.VersionStages
	if len(stages) == 0 || len(secret.Versions) == 0 && !slices.Contains(stages, current) {
		stages = append(slices.Clone(stages), current)
	}
	s.add(secret, v, stages)
	return value{ARN: secret.ARN, Name: secret.Name, VersionID: v.ID, VersionStages: v.Stages}, s.save()
}

// updateSecretVersionStage moves, adds or removes a label. A label that is on another version must be named there.
func (s *Store) updateSecretVersionStage(in request) (any, error) {
	secret := s.find(in.SecretID)
	if secret == nil {
		return nil, errNoSecret
	}
	holder := secret.withStage(in.VersionStage)
	if in.VersionStage == "" || (in.MoveToVersionID == "" && in.VersionStage == current) {
		return nil, errParameter
	}
	if holder != nil && holder.ID != in.RemoveFromVersionID && holder.ID != in.MoveToVersionID {
		return nil, errRequest
	}
	if in.MoveToVersionID == "" {
		if holder == nil {
			return nil, errRequest
		}
		holder.drop(in.VersionStage)
	} else {
		to := secret.withID(in.MoveToVersionID)
		if to == nil {
			return nil, errNoVersion
		}
		secret.move(in.VersionStage, to)
	}
	secret.Changed = s.now().UTC()
	return value{ARN: secret.ARN, Name: secret.Name}, s.save()
}

// versionOf makes the version that a request asks for; its token is the version's id.
func (s *Store) versionOf(in request) *version {
	id := in.ClientRequestToken
	if id == "" {
		id = s.newID()
	}
	return &version{ID: id, Text: in.SecretString, Binary: in.SecretBinary}
}

// same tells whether two versions have one value.
func (v *version) same(other *version) bool {
	if v.Text != nil && other.Text != nil {
		return *v.Text == *other.Text
	}
	return v.Text == nil && other.Text == nil && bytes.Equal(v.Binary, other.Binary)
}

// seconds is a date as the protocol writes it.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
