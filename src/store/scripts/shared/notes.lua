-- Notes the changes of a sweep to single jobs, for the log of its caller.

local notes, note
do
  -- The jobs that one call names; it counts the others.
  local NOTES_MAX = 100
  -- { id, script type, what happened }, …
  notes = {}

  function note(id, script_type, text)
    if #notes < NOTES_MAX then notes[#notes + 1] = { id, script_type or '', text } end
  end
end
