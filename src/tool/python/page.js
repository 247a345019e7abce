const filter = document.getElementById('filter');
const sections = [...document.querySelectorAll('section')];
function apply() {
  const wanted = filter.value.trim().toLowerCase();
  for (const section of sections) {
    const rows = [...section.querySelectorAll('.row')];
    let shown = 0;
    for (const row of rows) {
      row.hidden = wanted !== '' && !row.textContent.toLowerCase().includes(wanted);
      shown += !row.hidden;
    }
    section.querySelector('.shown').textContent = shown + ' of ' + rows.length;
  }
}
filter.addEventListener('input', apply);
const asked = new URLSearchParams(location.hash.slice(1)).get('filter');
if (asked !== null) filter.value = asked;
apply();
